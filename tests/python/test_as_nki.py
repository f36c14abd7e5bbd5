"""The names nki and neuronxcc.nki: who answers to them, and when."""

import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def python(code: str, *path: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*path, os.path.join(ROOT, "python")])}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)


def test_without_the_import_nobody_answers():
    run = python("import headway.nki\nimport nki")
    assert run.returncode != 0 and "No module named 'nki'" in run.stderr


def test_the_names_are_the_same_modules():
    run = python(
        "import headway.as_nki\n"
        "import nki, nki.isa, nki.language as nl, headway.nki\n"
        "from nki.isa.constants import dge_mode\n"
        "import neuronxcc.nki as old, neuronxcc.nki.typing as nt\n"
        "assert nki is headway.nki and nki.isa is headway.nki.isa and nl is headway.nki.language\n"
        "assert nki.__name__ == 'headway.nki' and nki.__spec__.name == 'headway.nki'\n"
        "import headway.neuronxcc.nki\n"
        "assert old is headway.neuronxcc.nki\n"
        "import headway.as_nki\n"
    )
    assert run.returncode == 0, run.stderr


def test_a_module_that_is_not_there():
    run = python("import headway.as_nki\nimport nki.nothing")
    assert run.returncode != 0 and "nki.nothing" in run.stderr


def test_an_installed_package_is_not_shadowed_silently(tmp_path):
    (tmp_path / "nki").mkdir()
    (tmp_path / "nki" / "__init__.py").write_text("theirs = True\n")
    run = python("import headway.nki\nimport nki\nassert nki.theirs", str(tmp_path))
    assert run.returncode == 0, run.stderr
    run = python("import headway.as_nki\nimport nki\nassert not hasattr(nki, 'theirs')", str(tmp_path))
    assert run.returncode == 0 and "ShadowWarning" in run.stderr and str(tmp_path) in run.stderr
    run = python("import nki\nimport headway.as_nki", str(tmp_path))
    assert run.returncode != 0 and "already imported" in run.stderr
