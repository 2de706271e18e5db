"""The style sheet of the static pictures, one string, scoped by the class `wb-ex`.

The class is doubled so that it wins over JupyterLab's own rules for tables and text. Colours
are JupyterLab's where it is there; elsewhere the reader's system says light or dark.
"""

from __future__ import annotations

LIGHT = {
    "fg": "#1f2328",
    "muted": "#57606a",
    "bg": "#ffffff",
    "card": "#f6f8fa",
    "line": "#d0d7de",
    "edge": "#8c959f",
    "tint": "0.55",
    "outline": "#7a838d",
}
DARK = {
    "fg": "#e6edf3",
    "muted": "#a9b4c0",
    "bg": "#111418",
    "card": "#1c2128",
    "line": "#444c56",
    "edge": "#768390",
    "tint": "0.34",
    "outline": "#8b949e",
}
_OF_JUPYTER = {"fg": "--jp-content-font-color0", "bg": "--jp-layout-color1"}


def _tokens(theme: dict[str, str]) -> str:
    scheme = "dark" if theme is DARK else "light"  # which pictures inside follow
    return f"color-scheme:{scheme};" + "".join(
        f"--wb-{name}:" + (f"var({_OF_JUPYTER[name]},{v});" if name in _OF_JUPYTER else f"{v};")
        for name, v in theme.items()
    )


_RULES = """
{font:13px/1.45 system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif;
 color:var(--wb-fg);background:var(--wb-bg);padding:8px;text-align:left;max-width:1200px}
 *{box-sizing:border-box}
 code, pre, .m{font-family:ui-monospace,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace;
 font-size:12px;background:none;color:inherit}
 .mu{color:var(--wb-muted)}
 .head{display:flex;flex-wrap:wrap;gap:2px 14px;align-items:baseline;margin:0 0 8px}
 .head .expr{font-size:14px;font-weight:600}
 .head .sum{color:var(--wb-muted)}
 .card{border:1px solid var(--wb-line);border-left:5px solid var(--wb-k,var(--wb-line));
 border-radius:6px;margin:10px 0;padding:8px 10px}
 .title{display:flex;flex-wrap:wrap;gap:2px 10px;align-items:baseline;margin:0 0 4px}
 .title b{font-size:14px}
 .no{display:inline-block;min-width:20px;padding:0 5px;border-radius:10px;text-align:center;
 font-size:12px;font-weight:700;color:#111;background:var(--wb-k)}
 .chip{display:inline-block;min-width:19px;padding:0 4px;border-radius:4px;text-align:center;
 font-size:11px;line-height:16px;font-weight:700;font-family:inherit}
 .scroll{overflow-x:auto;margin:4px 0}
 .capt{color:var(--wb-muted);font-size:12px;margin:2px 0 6px}
 table{border-collapse:collapse;border-spacing:0;margin:0;font-size:12px;color:inherit;
 table-layout:auto}
 tr, tbody tr, tbody tr:nth-child(odd), tbody tr:nth-child(even), tbody tr:hover
 {background:none}
 th, td{border:0;padding:2px 9px;text-align:left;vertical-align:top;
 white-space:nowrap;color:inherit;max-width:none}
 thead th{border-bottom:1px solid var(--wb-line);font-weight:600;vertical-align:bottom}
 thead th .mu{font-weight:400}
 td.n, th.n{text-align:right;font-variant-numeric:tabular-nums}
 td.s{padding-right:3px;font-weight:600}
 td.by{padding-left:3px;color:var(--wb-muted)}
 th.b{border-left:1px solid var(--wb-line)}
 td.s{border-left:1px solid var(--wb-line)}
 td.w{white-space:normal;min-width:180px}
 td.st{padding-top:3px;padding-bottom:3px;white-space:normal}
 td.st pre{margin:0;padding:1px 6px;background:var(--wb-card);border-radius:4px;
 white-space:pre-wrap;display:inline-block;border:0}
 details{margin:3px 0}
 details > summary{cursor:pointer;padding:2px 0}
 details > summary:hover{text-decoration:underline}
 details[open] > summary{font-weight:600}
 .body{margin:2px 0 8px 15px}
 pre.src{margin:0;padding:8px 10px;background:var(--wb-card);border:1px solid var(--wb-line);
 border-radius:4px;overflow:auto;max-height:420px;white-space:pre;line-height:1.4}
 .opts{display:flex;flex-wrap:wrap;gap:4px;margin:2px 0 6px}
 .opts code{border:1px solid var(--wb-line);border-radius:4px;padding:0 5px;
 background:var(--wb-card)}
 .off{color:var(--wb-muted)}
 .bad{font-weight:600;white-space:pre-wrap}
 .legend{display:flex;flex-wrap:wrap;gap:4px 16px;margin:2px 0}
 img{display:block;margin:0 auto;max-width:none}
"""


def _scoped(rules: str) -> str:
    """Put `.wb-ex.wb-ex` before every selector; a rule without one is for the box itself."""
    blocks = []
    for rule in " ".join(rules.split()).split("}"):
        selectors, brace, body = rule.partition("{")
        if brace:
            named = ",".join(f"{SCOPE} {s.strip()}".strip() for s in selectors.split(","))
            blocks.append(f"{named}{{{body}}}")
    return "\n".join(blocks)


SCOPE = ".wb-ex.wb-ex"
STYLE = "\n".join(
    [
        f"{SCOPE}{{{_tokens(LIGHT)}}}",
        f"@media (prefers-color-scheme:dark){{{SCOPE}{{{_tokens(DARK)}}}}}",
        f'[data-jp-theme-light="true"] {SCOPE}{{{_tokens(LIGHT)}}}',
        f'[data-jp-theme-light="false"] {SCOPE}{{{_tokens(DARK)}}}',
        _scoped(_RULES),
    ]
)
"""The whole sheet: themes, then rules."""
