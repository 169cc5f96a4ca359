"""Who includes whom: every #include in src against ARCHITECTURE.md and against CMake's USES."""

import re
import unittest

import project


def allowed(rules, folder, header):
    """'' where `folder` may include `header` (a path below src), else the reason."""
    rule = rules[folder]
    target = project.folder_of(header)
    if target is None:
        return f"no row of ARCHITECTURE.md's table holds src/{header}"
    if target == folder or rule is None:
        return ""
    for other, only in rule:
        if other != target:
            continue
        if only == "attribute headers" and project.reaches(header, "graph"):
            return f"{folder} may include only those headers of {target} that reach no graph header"
        if only == "interface" and header.count("/") != target.count("/") + 1:
            return f"{folder} may include only the headers that lie directly in {target}"
        return ""
    return f"{folder} may not include {target}"


class Includes(unittest.TestCase):
    def test_table_is_readable(self):
        rules = project.folder_rules()
        self.assertIn("base", rules)
        for folder, rule in rules.items():
            for other, _ in rule or []:
                self.assertIn(other, rules, f"the row of {folder} names a folder without a row")

    def test_every_source_folder_has_a_row(self):
        orphans = {
            project.name(p.parent)
            for p in project.files("src")
            if project.folder_of(p.relative_to(project.ROOT / "src").as_posix()) is None
        }
        self.assertFalse(orphans, project.report(sorted(orphans)))

    def test_every_back_end_has_a_row_of_its_own(self):
        there = {f"backends/{p.name}" for p in (project.ROOT / "src/backends").iterdir() if p.is_dir()}
        without = sorted(there - set(project.folder_rules()))
        self.assertFalse(without, "ARCHITECTURE.md's table of folders has no row for " + ", ".join(without))

    def test_the_map_names_the_folders_that_exist(self):
        named = {
            place.strip().removeprefix("src/")
            for row in project.table("ARCHITECTURE.md", "folder") if "what is there" in row
            for place in row["folder"].split(",") if place.strip().startswith("src/")
        }
        there = {p.name for p in (project.ROOT / "src").iterdir() if p.is_dir()}
        self.assertEqual(named, there)

    def test_includes_follow_the_table(self):
        rules, problems = project.folder_rules(), []
        for path in project.files("src"):
            inside = path.relative_to(project.ROOT / "src").as_posix()
            folder = project.folder_of(inside)
            for line, kind, header in project.includes(path):
                if kind != '"' or folder is None:
                    continue
                place = f"{project.name(path)}:{line}"
                if not (project.ROOT / "src" / header).is_file():
                    # A file that the build generates lies beside its users.
                    if "/" not in header or project.folder_of(header) != folder:
                        problems.append(f"{place}: \"{header}\" is not a path from src/")
                    continue
                reason = allowed(rules, folder, header)
                if reason:
                    problems.append(f"{place}: includes \"{header}\": {reason}")
        self.assertFalse(problems, project.report(problems))

    def test_parts_of_the_cpu_back_end_follow_their_table(self):
        top, problems = "backends/cpu/", []
        rules = {
            row["part of backends/cpu"]: {part.strip() for part in row["may include"].split(",")}
            for row in project.table("ARCHITECTURE.md", "part of backends/cpu")
        }
        there = {p.name for p in (project.ROOT / "src" / top).iterdir() if p.is_dir()}
        self.assertEqual(set(rules), there)
        for path in project.files("src/" + top):
            part = path.parent.name
            for line, kind, header in project.includes(path):
                other = header.removeprefix(top).split("/")
                if kind != '"' or not header.startswith(top) or len(other) == 1:
                    continue
                if other[0] != part and other[0] not in rules.get(part, {"kernels"}):
                    problems.append(f"{project.name(path)}:{line}: {part} may not include {other[0]}")
        self.assertFalse(problems, project.report(problems))

    def test_uses_is_allowed_and_complete(self):
        rules, problems = project.folder_rules(), []
        folder_of_target = {
            target: project.folder_of(folder + "/") or folder
            for target, (folder, _, _) in project.targets().items()
        }
        for target, (where, uses, cmake) in project.targets().items():
            folder = folder_of_target[target]
            if uses is None or folder not in rules:
                continue
            included = self.included_folders(where, folder, rules[folder])
            used = set()
            for other in uses:
                if other not in folder_of_target:
                    problems.append(f"{cmake}: aloft_{target} USES {other}, which is no target")
                    continue
                used.add(folder_of_target[other])
            may = None if rules[folder] is None else {f for f, only in rules[folder]} | {folder}
            for other in sorted(used - may) if may is not None else []:
                problems.append(f"{cmake}: aloft_{target} USES {other}, which {folder} may not")
            for other in sorted(included - used - {folder}):
                problems.append(f"{cmake}: aloft_{target} includes {other} without USES {other}")
        self.assertFalse(problems, project.report(problems))

    @staticmethod
    def included_folders(where, folder, rule):
        """Folders whose headers the sources below src/<where> include and must link."""
        header_only = {f for f, only in rule or [] if only}
        nested = [f for f, _, _ in project.targets().values() if f.startswith(where + "/")]
        found = set()
        for path in project.files("src/" + where):
            inside = path.relative_to(project.ROOT / "src").as_posix()
            if any(inside.startswith(f + "/") for f in nested):
                continue
            for _, kind, header in project.includes(path):
                if kind == '"' and project.folder_of(header):
                    found.add(project.folder_of(header))
        return found - header_only

    def test_outside_headers_stay_where_they_belong(self):
        rows = project.table("ARCHITECTURE.md", "outside header")
        problems = []
        for path in project.files("src") + project.files("include"):
            where = project.name(path).removeprefix("src/")
            for line, kind, header in project.includes(path):
                if kind != "<" or free(header):
                    continue
                places = [r["may be included in"] for r in rows if matches(r["outside header"], header)]
                if not places:
                    problems.append(f"{project.name(path)}:{line}: <{header}> is in no row of the "
                                    "table of outside headers in ARCHITECTURE.md")
                elif places[0] != "everything" and not any(
                    where.startswith(place.strip() + "/") for place in places[0].split(",")
                ):
                    problems.append(f"{project.name(path)}:{line}: <{header}> may be included only "
                                    f"in {places[0]}")
        self.assertFalse(problems, project.report(problems))

    def test_the_installed_interface_needs_nothing_else(self):
        """Public headers, and all that they reach, include only ours and the C++ library's; but what is
        for programs that use another library, which no other header includes."""
        alone = {project.ROOT / "include/aloft/format.h": "fmt/format.h"}
        todo, seen, problems = project.files("include", {".h"}), set(), []
        while todo:
            path = todo.pop()
            if path in seen:
                continue
            seen.add(path)
            for line, _, header in project.includes(path):
                ours = project.named_by(header)
                todo += ours
                if alone.keys() & set(ours):
                    problems.append(f"{project.name(path)}:{line}: {header} stands alone")
                if alone.get(path) == header:
                    continue
                if not ours and not re.fullmatch(r"[a-z_0-9]+", header):
                    problems.append(f"{project.name(path)}:{line}: <{header}> would be needed by "
                                    "everyone who includes <aloft/aloft.h>")
        self.assertFalse(problems, project.report(problems))


POSIX = {
    "dirent.h", "dlfcn.h", "fcntl.h", "glob.h", "poll.h", "pthread.h", "sched.h", "signal.h",
    "termios.h", "unistd.h", "malloc.h", "omp.h", "cpuid.h", "execinfo.h", "link.h",
}


def free(header):
    """Headers of the C++ and C libraries, OpenMP and POSIX; aloft's own public ones."""
    return (
        re.fullmatch(r"[a-z_0-9]+", header) is not None
        or header in POSIX
        or header.startswith(("sys/", "aloft/", "linux/", "asm/"))
    )


def matches(prefix, header):
    """'fmt/' matches fmt/core.h, 'dnnl' matches dnnl.hpp and dnnl_types.h."""
    return header.startswith(prefix)


if __name__ == "__main__":
    unittest.main()
