"""Every error treadle raises on purpose, and how each face shows it.

* TreadleError
  + InvalidArgument      TR001  the caller is wrong; do not retry
    - TooLarge           TR002  a payload over the size cap
    - SecretRefused      TR111  the payload holds what looks like a credential
    - KeyReused          TR112  the Idempotency-Key was sent with another request
  + Conflict
    - ClaimLost          TR101  another worker owns the task now; drop the result
    - IllegalTransition  TR102  the task is not in a state that allows this
    - CycleRefused       TR103  tasks would wait for each other
    - StepConflict       TR104  a step was saved with another input
    - BudgetExceeded     TR106  a budget has no room for this
    - ReportRequired     TR107  the type wants a decision report
    - AlreadyTaken       TR108  the agent has other work
    - RequestInFlight    TR113  the same request is being answered now
  + QueueFull            TR105  the queue holds as many tasks as it may
  + NotFound
    - TaskNotFound       TR201
    - UnknownQueue       TR202
    - UnknownType        TR203
    - UnknownAgent       TR204
    - DagNotFound        TR205
    - WaitNotFound       TR206
    - StepNotFound       TR207
    - UnknownProject     TR208
    - UnknownGate        TR209
    - UnknownBudget      TR210
    - UnknownSchedule    TR211
    - UnknownTrigger     TR212
    - UnknownWebhook     TR213
    - ArtifactNotFound   TR214
    - WorkItemNotFound   TR215
    - UnknownToken       TR217
  + SchemaError
    - SchemaMissing      TR301  the database has no treadle schema
    - SchemaTooNew       TR302  the schema is newer than this code
    - SchemaOutdated     TR303  the schema is older than this code
    - MigrationChanged   TR304  an applied migration was edited
    - RolesMissing       TR305  the treadle roles do not exist and may not be made
  + Forbidden            42501  the login lacks a role of treadle
  + Unauthenticated      TR401  no token, or none that is valid
  + TooManyRequests      TR429  more requests than the caller may make; wait
  + Unavailable          -      connection or lock trouble; retry with backoff
  + DatabaseError        -      PostgreSQL refused it for a reason that is not ours
  + StoreError           -      the store of artifacts cannot be reached, or refused
  + ResultTimeout        -      the awaited task did not end in time
  + TaskFailed           -      the awaited task was dead-lettered or cancelled
  + WaitExpired          -      nobody answered in time
  + ConfigurationError   -      a setting or an application path is wrong
    - MissingExtra       -      an optional dependency is not installed

One class has one SQLSTATE, one HTTP status with its problem code, and one exit code.
"""

from treadle.errors.base import (
    TreadleError,
    by_sqlstate,
)
from treadle.errors.calls import (
    AlreadyTaken,
    BudgetExceeded,
    ClaimLost,
    Conflict,
    CycleRefused,
    IllegalTransition,
    InvalidArgument,
    KeyReused,
    QueueFull,
    ReportRequired,
    RequestInFlight,
    ResultTimeout,
    SecretRefused,
    StepConflict,
    TaskFailed,
    TooLarge,
    WaitExpired,
)
from treadle.errors.missing import (
    ArtifactNotFound,
    DagNotFound,
    NotFound,
    StepNotFound,
    TaskNotFound,
    UnknownAgent,
    UnknownBudget,
    UnknownGate,
    UnknownProject,
    UnknownQueue,
    UnknownSchedule,
    UnknownToken,
    UnknownTrigger,
    UnknownType,
    UnknownWebhook,
    WaitNotFound,
    WorkItemNotFound,
)
from treadle.errors.system import (
    ConfigurationError,
    DatabaseError,
    Forbidden,
    MigrationChanged,
    MissingExtra,
    RolesMissing,
    SchemaError,
    SchemaMissing,
    SchemaOutdated,
    SchemaTooNew,
    StoreError,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
    extra,
)

__all__ = [
    "AlreadyTaken",
    "ArtifactNotFound",
    "BudgetExceeded",
    "ClaimLost",
    "ConfigurationError",
    "Conflict",
    "CycleRefused",
    "DagNotFound",
    "DatabaseError",
    "Forbidden",
    "IllegalTransition",
    "InvalidArgument",
    "KeyReused",
    "MigrationChanged",
    "MissingExtra",
    "NotFound",
    "QueueFull",
    "ReportRequired",
    "RequestInFlight",
    "ResultTimeout",
    "RolesMissing",
    "SchemaError",
    "SchemaMissing",
    "SchemaOutdated",
    "SchemaTooNew",
    "SecretRefused",
    "StepConflict",
    "StepNotFound",
    "StoreError",
    "TaskFailed",
    "TaskNotFound",
    "TooLarge",
    "TooManyRequests",
    "TreadleError",
    "Unauthenticated",
    "Unavailable",
    "UnknownAgent",
    "UnknownBudget",
    "UnknownGate",
    "UnknownProject",
    "UnknownQueue",
    "UnknownSchedule",
    "UnknownToken",
    "UnknownTrigger",
    "UnknownType",
    "UnknownWebhook",
    "WaitExpired",
    "WaitNotFound",
    "WorkItemNotFound",
    "by_sqlstate",
    "extra",
]
