"""What tests of the command line share."""

import pytest


@pytest.fixture
def call(capsys, monkeypatch, tmp_path):
    """Run a command in this process, in a folder of its own: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def called(*arguments):
        from thalweg.cli import main

        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        return end.value.code, *capsys.readouterr()

    return called


@pytest.fixture
def works(call):
    """Run a command that must end well; stdout and stderr."""

    def worked(*arguments):
        code, out, err = call(*arguments)
        assert code == 0, err
        return out, err

    return worked


@pytest.fixture
def fails(call):
    """Run a command that must end with one line and code 1; the line."""

    def failed(*arguments):
        code, out, err = call(*arguments)
        assert code == 1
        assert out == ""
        assert err.startswith("error: ")
        assert err.count("\n") == 1
        return err

    return failed
