"""What was named and does not exist."""

from treadle.errors.base import TreadleError


class NotFound(TreadleError):
    """What was named does not exist."""

    exit_code = 3
    http_status = 404


class TaskNotFound(NotFound):
    """No task has this id."""

    sqlstate = "TR201"


class UnknownQueue(NotFound):
    """No queue has this name."""

    sqlstate = "TR202"


class UnknownType(NotFound):
    """No task type has this name."""

    sqlstate = "TR203"


class UnknownAgent(NotFound):
    """No agent has registered under this id."""

    sqlstate = "TR204"


class DagNotFound(NotFound):
    """No DAG has this id."""

    sqlstate = "TR205"


class WaitNotFound(NotFound):
    """No wait has this id."""

    sqlstate = "TR206"


class StepNotFound(NotFound):
    """The task has no step of this name."""

    sqlstate = "TR207"


class UnknownProject(NotFound):
    """No project has this name."""

    sqlstate = "TR208"


class UnknownGate(NotFound):
    """No gate has this key."""

    sqlstate = "TR209"


class UnknownBudget(NotFound):
    """There is no such budget."""

    sqlstate = "TR210"


class UnknownSchedule(NotFound):
    """No schedule has this name."""

    sqlstate = "TR211"


class UnknownTrigger(NotFound):
    """No trigger has this name."""

    sqlstate = "TR212"


class UnknownWebhook(NotFound):
    """No webhook has this name."""

    sqlstate = "TR213"


class ArtifactNotFound(NotFound):
    """No artifact has this id or name."""

    sqlstate = "TR214"


class WorkItemNotFound(NotFound):
    """No work item has this id."""

    sqlstate = "TR215"


class UnknownToken(NotFound):
    """No token has this id or name."""

    sqlstate = "TR217"
