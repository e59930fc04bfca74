"""The ``oasis`` command: sets up the subcommands and turns errors into one line."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import threading
import traceback
from typing import NoReturn

from experiments.cli import exit_codes as codes
from experiments.cli.streams import naming_output, open_streams, print_version
from oasis import starting
from oasis.extras import EXTRAS, install_line
from oasis.model.errors import OasisError

SELDOM = 200_000  # new objects from one look to the next; Python's own 700 suit small programs


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with a code of `experiments.cli.exit_codes`."""
    words = sys.argv[1:] if arguments is None else arguments
    if not open_streams():
        _leave(_fail("standard output is closed; expected it to be open"))
    # Instances and runs are made of many objects that stay, and each search goes over many of them.
    gc.set_threshold(SELDOM)
    atexit.register(gc.freeze)  # no search when the process ends: its memory is given back anyway
    try:
        with naming_output(is_certain=False):
            if words == ["--version"]:
                print_version()  # without the time that it takes to load the commands
                sys.stdout.flush()
                _leave(codes.DONE)
            from experiments.cli.app import oasis_command, run_app  # noqa: PLC0415 (an extra)

            app = oasis_command(*words[:1])
            # From here on Ctrl-C may have results to keep,
            # so that it no longer ends the process at once.
            starting.work_begins()
            # Batch systems and service managers send SIGTERM, which is taken for a Ctrl-C.
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGTERM, signal.default_int_handler)
            code = run_app(words, app)
            sys.stdout.flush()
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        code = _fail(f"this command needs {package}: {install_line(EXTRAS[package])}")
    except codes.ReaderGoneError:  # as in `oasis run ... | head`
        code = codes.DONE
    except (KeyboardInterrupt, codes.InterruptedWorkError) as error:
        code = _fail(str(error) or "interrupted", codes.INTERRUPTED)
    except OasisError as error:
        # The words are asked, not the option: the error may have come before it was read.
        if "--verbose" in words and error.__cause__ is not None:  # of code that is the user's own
            _show(error.__cause__)
        code = _fail(str(error))
    except OSError as error:  # a file of the user's that cannot be read or written
        where = f"{error.filename}: " if error.filename else ""
        code = _fail(f"{where}{error.strerror or error}")
    except MemoryError:
        code = _fail("not enough memory for an instance of this size")
    except Exception as error:  # noqa: BLE001 (it is shown, and the exit code says whose fault it is)
        code = _bug(error, is_verbose="--verbose" in words)
    _leave(code)


def _leave(code: int) -> NoReturn:
    """End the process with `code`, even if Ctrl-C left HiGHS running (`oasis.solvers.highs`)."""
    if any(thread.name == "HiGHS" for thread in threading.enumerate()):
        # its next call of Python would come while the interpreter is being taken down
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _bug(error: Exception, *, is_verbose: bool) -> int:
    """Report a fault of the program, with its traceback if `is_verbose`; return the exit code."""
    if is_verbose:
        _show(error)
    more = "" if is_verbose else "; run again with --verbose for the traceback"
    message = f": {error}" if str(error) else ""
    return _fail(f"a bug: {type(error).__name__}{message}{more}", codes.BUG)


def _show(error: BaseException) -> None:
    sys.stderr.write("".join(traceback.format_exception(error)))


def _fail(message: str, code: int = codes.BAD_INPUT) -> int:
    """Print one line on standard error, control characters escaped; return the exit code `code`."""
    # One line, whatever the message holds: scripts read it.
    line = " ".join(message.split())
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)
    print("oasis:", shown, file=sys.stderr)  # noqa: T201
    return code
