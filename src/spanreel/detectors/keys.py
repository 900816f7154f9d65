"""Keys that providers and clouds give out, told by the prefixes they document.

A prefix is enough where nothing else starts like it; where something may, the length or a checksum has to fit too.
"""

from __future__ import annotations

from typing import Final

from spanreel.detectors.finding import Detector, Kind
from spanreel.detectors.matching import START, matching

_KEYS: Final = (
    r"sk-(?!learn\b)[A-Za-z0-9_-]{4,}",
    r"(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{8,}",
    r"whsec_[A-Za-z0-9+/=]{8,}",
    r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])",
    r"gh[pousr]_[A-Za-z0-9]{16,}",
    r"github_pat_[A-Za-z0-9_]{16,}",
    r"xox[abeoprs]-[A-Za-z0-9-]{8,}",
    r"xapp-[A-Za-z0-9-]{8,}",
    r"AIza[A-Za-z0-9_-]{30,}",
    r"ya29\.[A-Za-z0-9_-]{16,}",
    r"hf_[A-Za-z0-9]{16,}",
    r"gl(?:pat|dt|rt|oas|cbt|ptt|ft|imt|agent|soat|ffct)-[A-Za-z0-9_-]{16,}",
    r"npm_[A-Za-z0-9]{30,}",
    r"pypi-[A-Za-z0-9_-]{32,}",
    r"do[opr]_v1_[a-f0-9]{32,}",
    r"gsk_[A-Za-z0-9]{20,}",
    r"xai-[A-Za-z0-9]{20,}",
    r"pplx-[A-Za-z0-9]{20,}",
    r"tvly-[A-Za-z0-9-]{16,}",
    r"nvapi-[A-Za-z0-9_-]{20,}",
    r"r8_[A-Za-z0-9]{20,}",
    r"lsv2_(?:pt|sk)_[A-Za-z0-9_]{16,}",
    r"pcsk_[A-Za-z0-9_]{20,}",
    r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    r"dapi[a-f0-9]{32}",
    r"AGE-SECRET-KEY-1[A-Z0-9]{20,}",
)

PROVIDER_KEY: Final = Detector(
    "provider key",
    Kind.CREDENTIAL,
    (
        *("sk-", "sk_live_", "sk_test_", "rk_live_", "rk_test_", "pk_live_", "pk_test_", "whsec_", "akia", "asia"),
        *("abia", "acca", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "xox", "xapp-", "aiza", "ya29."),
        *("hf_", "glpat-", "gldt-", "glrt-", "gloas-", "glcbt-", "glptt-", "glft-", "glimt-", "glagent-", "glsoat-"),
        *("glffct-", "npm_", "pypi-", "do_v1_", "doo_v1_", "dop_v1_", "dor_v1_", "gsk_", "xai-", "pplx-", "tvly-"),
        *("nvapi-", "r8_", "lsv2_", "pcsk_", "sg.", "dapi", "age-secret-key-"),
    ),
    matching(START + "(?:" + "|".join(_KEYS) + ")"),
)
