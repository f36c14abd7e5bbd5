"""fabric under the name it had beside its first version. Nothing here connects to another machine."""

try:
    from fabric import *  # noqa: F401,F403
    from fabric import Config, Connection, Result  # noqa: F401
except ImportError:

    class Connection:  # the harness names these in annotations
        pass

    class Config:
        pass

    class Result:
        pass
