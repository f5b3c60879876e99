"""The table of settings: every key that a configuration may hold, and where it may stand.

Owns the composition of the rows into sections (the top level, a provider, a deployment, a pool,
a member). Parsing, validation, the defaults, "not built yet" and the reference page all read it.

Surprising case: policy keys of scope `request` are known but may not stand in a provider, a
deployment or a member, because they are chosen before a candidate is.
"""

from outlast.config.key import Key, Scope, Section
from outlast.config.table_answer import ANSWER
from outlast.config.table_file import LATER, SERVER, TELEMETRY, TOP
from outlast.config.table_health import BREAKER
from outlast.config.table_patience import FAILOVER, POOL_FAILOVER, RETRY, TIMEOUTS
from outlast.config.table_places import DEPLOYMENT, MEMBER, POOL, PROVIDER

POLICY: tuple[Key, ...] = (*TIMEOUTS, *RETRY, *FAILOVER, *BREAKER, *ANSWER)
REQUEST_POLICY = tuple(key for key in POLICY if key.scope is Scope.REQUEST)
CANDIDATE_POLICY = tuple(key for key in POLICY if key.scope is Scope.CANDIDATE)
_ONLY_WHOLE = (*REQUEST_POLICY, *POOL_FAILOVER)

COLLECTIONS = ("providers", "deployments", "pools")
"""Top-level mappings of name to section; not keys of the table."""

FILE_SECTION = Section(
    "the top level", (*TOP, *SERVER, *TELEMETRY, *POLICY, *LATER), elsewhere=POOL_FAILOVER
)
PROVIDER_SECTION = Section("a provider", (*PROVIDER, *CANDIDATE_POLICY), elsewhere=_ONLY_WHOLE)
DEPLOYMENT_SECTION = Section(
    "a deployment", (*DEPLOYMENT, *CANDIDATE_POLICY), elsewhere=_ONLY_WHOLE
)
MEMBER_SECTION = Section("a member", (*MEMBER, *CANDIDATE_POLICY), elsewhere=_ONLY_WHOLE)
POOL_SECTION = Section(
    "a pool", (*POOL, *(k for k in POLICY if k.path != "strategy"), *POOL_FAILOVER)
)
SECTIONS = (FILE_SECTION, PROVIDER_SECTION, DEPLOYMENT_SECTION, POOL_SECTION, MEMBER_SECTION)
