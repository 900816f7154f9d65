"""Keys that providers and clouds give out, told by the prefixes and lengths they document.

A prefix is enough where nothing else starts like it; where something may, what follows has to have a key's length.
What providers call publishable (PostHog's ``phc_``, Mapbox' ``pk.``) is no secret, and stays.
"""

from __future__ import annotations

import re
from typing import Final

from spanreel.detectors.finding import Detector, Kind
from spanreel.detectors.matching import START, matching

_END: Final = r"(?![A-Za-z0-9])"
_UUID: Final = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"

_MODELS: Final = (
    # OpenAI, Anthropic, OpenRouter, DeepSeek, Langfuse and many who write as they do.
    (("sk-",), r"sk-(?!learn\b)[A-Za-z0-9_-]{4,}"),
    (("hf_", "api_org_"), r"(?:hf|api_org)_[A-Za-z0-9]{16,}"),
    (("gsk_",), r"gsk_[A-Za-z0-9]{20,}"),
    (("xai-",), r"xai-[A-Za-z0-9]{20,}"),
    (("pplx-",), r"pplx-[A-Za-z0-9]{20,}"),
    (("tvly-",), r"tvly-[A-Za-z0-9-]{16,}"),
    (("nvapi-",), r"nvapi-[A-Za-z0-9_-]{20,}"),
    (("r8_",), r"r8_[A-Za-z0-9]{20,}"),
    (("lsv2_",), r"lsv2_(?:pt|sk)_[A-Za-z0-9_]{16,}"),
    (("pcsk_",), r"pcsk_[A-Za-z0-9_]{20,}"),
    (("pa-",), r"pa-[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])"),
    (("csk-",), r"csk-[a-z0-9]{32,}"),
    (("fw_",), r"fw_[A-Za-z0-9]{22,24}" + _END),
    (("tgp_v1_",), r"tgp_v1_[A-Za-z0-9_-]{32,}"),
    (("llx-",), r"llx-[A-Za-z0-9]{24,}"),
    (("jina_",), r"jina_[A-Za-z0-9_-]{40,}"),
    (("fc-",), r"fc-[0-9a-f]{32}" + _END),
    (("e2b_",), r"e2b_[0-9a-f]{32,}"),
    (("bb_live_",), r"bb_live_[A-Za-z0-9_-]{16,}"),
    (("esecret_",), r"esecret_[A-Za-z0-9]{20,}"),
    (("wandb_v1_",), r"wandb_v1_[A-Za-z0-9_]{20,}"),
    (("pylf_v1_",), r"pylf_v1_[a-z]{2,4}_[A-Za-z0-9]{20,}"),
    (("ABSK", "bedrock-api-key-"), r"(?:ABSKQmVkcm9ja|bedrock-api-key-)[A-Za-z0-9+/=]{20,}"),
)

_CLOUDS: Final = (
    (("AKIA", "ASIA", "ABIA", "ACCA"), r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}" + _END),
    (("AIza",), r"AIza[A-Za-z0-9_-]{30,}"),
    (("aq.ab",), r"AQ\.Ab[A-Za-z0-9_-]{40,}"),
    (("4/0a",), r"4/0A[A-Za-z0-9_-]{40,}"),
    (("v1.0-",), r"v1\.0-[a-f0-9]{24}-[a-f0-9]{100,}"),
    (("ya29.",), r"ya29\.[A-Za-z0-9_-]{16,}"),
    (("1//0",), r"1//0[A-Za-z0-9_-]{40,}"),
    (("gocspx-",), r"GOCSPX-[A-Za-z0-9_-]{20,}"),
    (("LTAI",), r"LTAI[A-Za-z0-9]{16,20}" + _END),
    (("AKID",), r"AKID[A-Za-z0-9]{32}" + _END),
    (("do_v1_", "doo_v1_", "dop_v1_", "dor_v1_"), r"do[opr]_v1_[a-f0-9]{32,}"),
    (("dapi",), r"dapi[a-f0-9]{32}(?:-\d)?" + _END),
    (("hrku-",), r"HRKU-[A-Za-z0-9_-]{30,}"),
    (("fm1_", "fm2_", "fo1_"), r"f(?:m[12]|o1)_[A-Za-z0-9+/_=-]{40,}"),
    (("nfp_", "rnd_", "vcp_", "vck_"), r"(?:nfp|rnd|vc[pk])_[A-Za-z0-9]{24,}"),
    (("sbp_", "sb_secret_"), r"sb(?:p_[a-f0-9]{40}|_secret_[A-Za-z0-9_-]{20,})"),
    (("napi_",), r"napi_[a-z0-9]{40,}"),
    (("pscale_",), r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{20,}"),
    (("hvs.", "hvb.", "hvr."), r"hv[sbr]\.[A-Za-z0-9_-]{20,}"),
    (("pul-",), r"pul-[a-f0-9]{40}" + _END),
    (("dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim."), r"dp\.(?:pt|st|ct|sa|scim)\.[A-Za-z0-9_.-]{32,}"),
    (("tskey-",), r"tskey-[a-z]{2,12}-[A-Za-z0-9]{6,}(?:-[A-Za-z0-9]{10,})?"),
    (("age-secret-key-",), r"AGE-SECRET-KEY-1[A-Z0-9]{20,}"),
    (("ops_eyj",), r"ops_eyJ[A-Za-z0-9_-]{40,}"),
)

_CODE: Final = (
    (("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"gh[pousr]_(?:[A-Za-z0-9]{16,}|[0-9]{1,20}_eyJ[A-Za-z0-9_.-]{20,})"),
    (("github_pat_",), r"github_pat_[A-Za-z0-9_]{16,}"),
    (
        (
            *("glpat-", "gldt-", "glrt-", "gloas-", "glcbt-", "glptt-", "glft-", "glimt-", "glagent-", "glsoat-"),
            "glffct-",
        ),
        r"gl(?:pat|dt|rt|oas|cbt|ptt|ft|imt|agent|soat|ffct)-[A-Za-z0-9_-]{16,}",
    ),
    (("npm_",), r"npm_[A-Za-z0-9]{30,}"),
    (("pypi-",), r"pypi-[A-Za-z0-9_-]{32,}"),
    (("rubygems_",), r"rubygems_[a-f0-9]{40,}"),
    (("oy2",), r"oy2[a-z0-9]{43}" + _END),
    (("dckr_pat_", "dckr_oat_"), r"dckr_[po]at_[A-Za-z0-9_-]{20,}"),
    (("akcp",), r"AKCp[A-Za-z0-9]{60,}"),
    (("bkua_",), r"bkua_[a-f0-9]{40}"),
    (("ccipat_", "cciprj_"), r"CCIP(?:AT|RJ)_[A-Za-z0-9_]{20,}"),
    (("sgp_",), r"sgp_(?:[A-Za-z0-9]{16}_|local_)?[a-f0-9]{40}"),
    (("pmak-",), r"PMAK-[A-Za-z0-9]{24}-[A-Za-z0-9]{30,}"),
    (("pnu_",), r"pnu_[A-Za-z0-9]{36}"),
)

_SERVICES: Final = (
    (
        ("sk_live_", "sk_test_", "rk_live_", "rk_test_", "pk_live_", "pk_test_"),
        r"(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{8,}",
    ),
    (("whsec_",), r"whsec_[A-Za-z0-9+/=]{8,}"),
    (("sk_",), r"sk_[0-9a-f]{48}" + _END),
    (
        ("xoxa-", "xoxb-", "xoxc-", "xoxd-", "xoxe-", "xoxe.xox", "xoxo-", "xoxp-", "xoxr-", "xoxs-"),
        r"xox(?:e\.xox)?[a-eoprs]-[A-Za-z0-9%-]{8,}",
    ),
    (("xapp-",), r"xapp-[A-Za-z0-9-]{8,}"),
    (("sg.",), r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    (("key-",), r"key-[0-9a-f]{32}" + _END),
    (("SK",), r"SK[0-9a-f]{32}" + _END),
    (("re_",), r"re_[A-Za-z0-9]{7,9}_[A-Za-z0-9]{20,}"),
    (("xkeysib-", "xsmtpsib-"), r"x(?:key|smtp)sib-[a-f0-9]{40,}-[A-Za-z0-9]{10,}"),
    (("mlsn.",), r"mlsn\.[A-Za-z0-9]{40,}"),
    (("nrak-", "nrjs-", "nrii-"), r"NR(?:AK|JS|II)-[A-Za-z0-9_-]{18,}"),
    (("sntrys_", "sntryu_"), r"sntry[su]_[A-Za-z0-9+/=_]{40,}"),
    (("phx_",), r"phx_[A-Za-z0-9]{30,}"),
    (("glsa_", "glc_"), r"gl(?:sa_[A-Za-z0-9]{32}_[a-f0-9]{8}|c_[A-Za-z0-9+/=]{32,})"),
    (("dt0c01.", "dt0s01."), r"dt0[a-z]\d\d\.[A-Z0-9]{24}\.[A-Z0-9]{40,}"),
    (("hcaik_",), r"hc[a-z]ik_[a-z0-9]{50,}"),
    (("lin_api_", "lin_oauth_"), r"lin_(?:api|oauth)_[A-Za-z0-9]{32,}"),
    (("secret_", "ntn_"), r"(?:secret_[A-Za-z0-9]{43}|ntn_[A-Za-z0-9]{40,})" + _END),
    (("pat??????????????.",), r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}"),
    (("pat-",), r"pat-[a-z]{2}\d-" + _UUID),
    (("figd_",), r"fig[dou]r?_[A-Za-z0-9_-]{36,}"),
    (("ATATT3", "ATCTT3", "ATBB"), r"AT(?:[AC]TT3[A-Za-z0-9_=-]{60,}|BB[A-Za-z0-9]{32})"),
    (("shpat_", "shpss_", "shpca_", "shppa_"), r"shp(?:at|ss|ca|pa)_[A-Fa-f0-9]{32}"),
    (("sq0atp-", "sq0csp-"), r"sq0(?:atp|csp)-[A-Za-z0-9_-]{22,}"),
    (("EAAA",), r"EAAA[A-Za-z0-9_-]{56,}"),
    (("access_token$",), r"access_token\$(?:production|sandbox)\$[a-z0-9]{16}\$[a-f0-9]{32}"),
    (("access-",), r"access-(?:sandbox|development|production)-" + _UUID),
    (("rzp_live_", "rzp_test_"), r"rzp_(?:live|test)_[A-Za-z0-9]{14,}"),
    (("flwseck",), r"FLWSECK(?:_TEST)?-[A-Za-z0-9]{12,}(?:-X)?"),
    (("duffel_",), r"duffel_(?:test|live)_[A-Za-z0-9_-]{40,}"),
    (("shippo_",), r"shippo_(?:live|test)_[a-f0-9]{40}"),
    (("EZAK", "EZTK"), r"EZ[AT]K[A-Za-z0-9]{54}"),
    (("cfpat-",), r"CFPAT-[A-Za-z0-9_-]{40,}"),
    (("sl.",), r"sl\.(?:u\.)?[A-Za-z0-9_-]{120,}"),
    (("tfp_",), r"tfp_[A-Za-z0-9_-]{40,}"),
)

_ALL: Final = (*_MODELS, *_CLOUDS, *_CODE, *_SERVICES)

_STYLE_NAME: Final = re.compile(r"sk(?:-[a-z]+){2,}")
_KEY_WORDS: Final = re.compile(r"sk-(?:admin|ant|fake|live|or|proj|svcacct|test)-")


def _is_key(match: re.Match[str]) -> bool:
    """Whether it is no name of a style in a web page (``sk-folding-cube``)."""
    return _STYLE_NAME.fullmatch(match[0]) is None or _KEY_WORDS.match(match[0]) is not None


PROVIDER_KEY: Final = Detector(
    "provider key",
    Kind.CREDENTIAL,
    tuple(dict.fromkeys(fragment for fragments, _ in _ALL for fragment in fragments)),
    matching(START + "(?:" + "|".join(pattern for _, pattern in _ALL) + ")", _is_key),
)

_WITHIN: Final = (
    # Told by what stands at a fixed place within: Mailchimp, Azure (clients, AI services), Terraform, Telegram.
    (("-us",), 32, r"(?<![0-9A-Za-z])[0-9a-f]{32}-us\d{1,2}" + _END),
    (("Q~",), 4, r"[A-Za-z0-9_.~-]{3}\dQ~[A-Za-z0-9_.~-]{31,34}"),
    (("JQQJ99",), 52, r"(?<![A-Za-z0-9])[A-Za-z0-9]{52}JQQJ99[A-Za-z0-9]{20,}"),
    ((".atlasv1.",), 14, r"(?<![A-Za-z0-9])[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,}"),
    ((":AA",), 8, r"\d{8}:(?P<value>AA[A-Za-z0-9_-]{33})(?![A-Za-z0-9_-])"),
)

KEYS_WITHIN: Final = tuple(
    Detector("provider key", Kind.CREDENTIAL, fragments, matching(pattern, back=back))
    for fragments, back, pattern in _WITHIN
)

WEBHOOK: Final = Detector(
    "webhook",
    Kind.CREDENTIAL,
    ("hooks.slack.com/", "discord.com/api/webhooks/", "discordapp.com/api/webhooks/", "webhook.office.com/"),
    # Who knows the address may post.
    matching(
        r"(?:hooks\.slack\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/webhooks/\d{15,20}/"
        r"|webhook\.office\.com/webhookb2/)(?P<value>[A-Za-z0-9_/@-]{20,})"
    ),
)
