from __future__ import annotations

import os

# Or LiteLLM fetches its price list when it is imported.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
