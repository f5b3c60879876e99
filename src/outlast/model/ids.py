"""Names as types, so that a pool is never handed in where a deployment is meant."""

from typing import NewType

ProviderName = NewType("ProviderName", str)
DeploymentName = NewType("DeploymentName", str)
PoolName = NewType("PoolName", str)
ModelName = NewType("ModelName", str)
CredentialId = NewType("CredentialId", str)
"""`<provider>#<index>`: names a key without showing it."""
RequestId = NewType("RequestId", str)
