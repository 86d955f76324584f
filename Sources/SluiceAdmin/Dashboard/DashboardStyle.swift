/// How the page looks. Colours are variables, of which there are two sets.
enum DashboardStyle {
  static var text: String {
    """
    :root { color-scheme: light; \(light) }
    @media (prefers-color-scheme: dark) { :root { color-scheme: dark; \(dark) } }
    :root[data-theme="light"] { color-scheme: light; \(light) }
    :root[data-theme="dark"] { color-scheme: dark; \(dark) }
    \(general)
    \(figures)
    \(tables)
    \(details)
    \(widths)
    """
  }

  private static let light = """
    --ground: #f4f6f5; --surface: #ffffff; --raised: #f9fbfa; --text: #1b2422; --quiet: #5a6966; --line: #dde4e1; \
    --accent: #0c6b6b; --soft: #d3e8e6; --warn: #8a4b00; --warn-ground: #fff1d9; --bad: #a3242a; --good: #1d7a46;
    """

  private static let dark = """
    --ground: #111719; --surface: #192023; --raised: #1e272a; --text: #e3eae8; --quiet: #93a5a1; --line: #2a3538; \
    --accent: #5fc7c0; --soft: #1d4343; --warn: #f2bd64; --warn-ground: #3a2c12; --bad: #f28b86; --good: #6fcf97;
    """

  private static let general = #"""
    * { box-sizing: border-box; }
    html { font: 15px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif; }
    body {
      margin: 0 auto; max-width: 1360px; padding: 0 24px 40px; background: var(--ground); color: var(--text);
      font-variant-numeric: tabular-nums; -webkit-text-size-adjust: 100%;
    }
    header { display: flex; flex-wrap: wrap; align-items: center; gap: 4px 20px; padding: 18px 0 14px; }
    header p { margin: 0; }
    header .plain { margin-left: auto; }
    h1 { font-size: 1.35rem; font-weight: 650; letter-spacing: -0.01em; margin: 0; }
    h2 { font-size: 1.05rem; font-weight: 600; margin: 0; }
    h2 .quiet { font-weight: 400; margin-left: 4px; }
    h3 { font-size: 0.87rem; font-weight: 500; color: var(--quiet); margin: 0; }
    section { margin-top: 26px; }
    section > h2 { margin-bottom: 10px; }
    main > section:first-child { margin-top: 6px; }
    a { color: var(--accent); }
    footer { margin-top: 28px; display: flex; flex-wrap: wrap; gap: 4px 16px; }
    code, .mono { font-family: ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", monospace; font-size: 0.87em; }
    .quiet { color: var(--quiet); }
    .hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
    .skip { position: absolute; left: -999px; top: 8px; background: var(--surface); padding: 8px 12px; border-radius: 6px; z-index: 1; }
    .skip:focus { left: 12px; }
    :focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 4px; }
    button { font: inherit; color: inherit; cursor: pointer; }
    .plain { background: var(--surface); border: 1px solid var(--line); border-radius: 7px; padding: 4px 11px; font-size: 0.9rem; }
    .plain:hover { border-color: var(--accent); }
    .plain:disabled { color: var(--quiet); cursor: default; border-color: var(--line); opacity: 0.6; }
    .notice { background: var(--warn-ground); color: var(--warn); padding: 10px 14px; border-radius: 8px; }
    .state { display: inline-flex; align-items: center; gap: 8px; }
    .dot { width: 9px; height: 9px; border-radius: 50%; background: var(--quiet); }
    [data-state="live"] .dot { background: var(--good); }
    [data-state="lost"] { color: var(--bad); font-weight: 600; }
    [data-state="lost"] .dot { background: var(--bad); }
    .stale main { opacity: 0.55; }
    @media (prefers-reduced-motion: no-preference) { .stale main, main { transition: opacity 0.3s; } }
    """#

  private static let figures = #"""
    .figures { display: grid; grid-template-columns: repeat(5, minmax(0, 1fr)); gap: 14px; }
    .figure, .card { background: var(--surface); border: 1px solid var(--line); border-radius: 12px; }
    .figure { padding: 13px 16px 14px; display: flex; flex-direction: column; min-width: 0; }
    .figure p { margin: 0; }
    .figure .value { white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
    .figure .value b { font-size: 1.65rem; font-weight: 600; letter-spacing: -0.02em; line-height: 1.35; }
    .figure .unit { color: var(--quiet); font-size: 0.87rem; }
    .figure p.quiet { font-size: 0.87rem; min-height: 1.45em; }
    .line { display: block; width: 100%; height: 36px; margin-top: auto; padding-top: 6px; overflow: visible; }
    .line .area { fill: var(--soft); stroke: none; }
    .line .stroke { fill: none; stroke: var(--accent); stroke-width: 1.5; vector-effect: non-scaling-stroke; stroke-linejoin: round; }
    .columns { display: flex; align-items: flex-end; gap: 2px; height: 30px; margin-top: auto; border-bottom: 1px solid var(--line); }
    .columns i { flex: 1; background: var(--accent); border-radius: 1.5px 1.5px 0 0; }
    .axis { display: flex; justify-content: space-between; font-size: 0.7rem; color: var(--quiet); line-height: 1.3; }
    .meter { height: 8px; border-radius: 4px; background: var(--soft); margin-top: auto; overflow: hidden; }
    .meter i { display: block; height: 100%; width: 0; background: var(--accent); }
    .holds { list-style: none; margin: 0; padding: 0; display: grid; gap: 6px; }
    .holds .hold { background: var(--warn-ground); border-left: 3px solid var(--warn); border-radius: 0 8px 8px 0; padding: 7px 12px; overflow-wrap: anywhere; }
    .holds b { font-weight: 600; }
    """#

  private static let tables = #"""
    .bar-above { display: flex; flex-wrap: wrap; align-items: center; gap: 8px 16px; margin-bottom: 10px; }
    .bar-above h2 { margin-right: auto; }
    .field input {
      font: inherit; color: inherit; background: var(--surface); border: 1px solid var(--line); border-radius: 7px; padding: 5px 11px; width: 15rem; max-width: 100%;
    }
    .check { display: inline-flex; align-items: center; gap: 6px; font-size: 0.93rem; }
    .check input { accent-color: var(--accent); width: 16px; height: 16px; margin: 0; }
    .scroll { overflow-x: auto; }
    table { border-collapse: collapse; width: 100%; }
    th, td { text-align: left; padding: 7px 12px; font-weight: 400; vertical-align: middle; }
    thead th { color: var(--quiet); font-size: 0.85rem; border-bottom: 1px solid var(--line); white-space: nowrap; }
    tbody tr + tr > * { border-top: 1px solid var(--line); }
    .n { text-align: right; white-space: nowrap; }
    th:first-child, td:first-child { padding-left: 16px; }
    th:last-child, td:last-child { padding-right: 16px; }
    thead button { background: none; border: 0; padding: 2px 0; font: inherit; color: inherit; }
    thead button:hover { color: var(--text); }
    thead [aria-sort="ascending"] button::after { content: " ↑"; }
    thead [aria-sort="descending"] button::after { content: " ↓"; }
    thead [aria-sort] { color: var(--text); }
    .topics tbody tr.topic:hover { background: var(--raised); }
    tr.topic > th { width: 34%; overflow-wrap: anywhere; }
    .topics tbody th button {
      background: none; border: 0; padding: 2px 0; text-align: left; font-weight: 550; color: var(--text); overflow-wrap: anywhere;
    }
    .topics tbody th button::before { content: "▸"; display: inline-block; width: 1.1em; color: var(--quiet); font-size: 0.85em; }
    .topics tbody th button[aria-expanded="true"]::before { content: "▾"; }
    .topics tbody th button:hover { color: var(--accent); }
    .zero { color: var(--quiet); }
    .tag {
      display: inline-block; margin-left: 7px; padding: 0 7px; border-radius: 9px; border: 1px solid var(--line); color: var(--quiet); font-size: 0.78rem; white-space: nowrap;
    }
    .tag.warn { color: var(--warn); background: var(--warn-ground); border-color: transparent; }
    .tag.bad { color: var(--bad); border-color: currentColor; }
    td .line { width: 110px; height: 22px; padding: 0; margin: 0; }
    .pager { display: flex; align-items: center; gap: 12px; margin: 10px 0 0; }
    .pager[hidden] { display: none; }
    """#

  private static let details = #"""
    .detail > td { background: var(--raised); padding: 14px 20px 20px 32px; }
    .detail h3 { color: var(--text); font-weight: 600; margin: 16px 0 4px; }
    .detail h3:first-child { margin-top: 0; }
    .detail table { background: var(--surface); }
    .detail th, .detail td { padding: 5px 12px; }
    .detail .facts { margin: 0; color: var(--quiet); font-size: 0.9rem; }
    .detail .facts span { margin-right: 16px; display: inline-block; }
    .detail tbody th { white-space: nowrap; }
    .detail .legend { margin: 0 0 6px; color: var(--quiet); font-size: 0.87rem; }
    .detail tr.holding > :first-child { box-shadow: inset 3px 0 var(--warn); }
    .detail .warn { color: var(--warn); }
    .demand { display: flex; height: 12px; width: 150px; border-radius: 3px; background: var(--raised); border: 1px solid var(--line); overflow: hidden; }
    .demand .sent { background: var(--accent); }
    .demand .owed { background: var(--soft); }
    .demand .any { background: repeating-linear-gradient(-45deg, var(--soft) 0 5px, transparent 5px 9px); }
    .demand-text { font-size: 0.85rem; color: var(--quiet); white-space: nowrap; }
    .records { list-style: none; margin: 8px 0 0; padding: 0; background: var(--surface); border: 1px solid var(--line); border-radius: 8px; }
    .records li { padding: 6px 12px; display: grid; grid-template-columns: 19rem minmax(0, 1fr); gap: 0 12px; align-items: baseline; }
    .records li + li { border-top: 1px solid var(--line); }
    .records .head { margin: 0; color: var(--quiet); font-size: 0.85rem; overflow-wrap: anywhere; }
    .records .head span { margin-right: 14px; }
    .records pre { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; max-height: 12em; overflow-y: auto; }
    """#

  private static let widths = #"""
    @media (max-width: 1100px) {
      .figures { grid-template-columns: repeat(3, minmax(0, 1fr)); }
      .wide { display: none; }
    }
    @media (max-width: 720px) {
      body { padding: 0 12px 32px; }
      header { padding: 12px 0 8px; gap: 4px 12px; }
      #about { order: 1; width: 100%; font-size: 0.9rem; }
      .figure:last-child { grid-column: 1 / -1; }
      .figure .value { white-space: normal; }
      .records li { display: block; }
      .figures { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 8px; }
      .figure { padding: 9px 11px 10px; }
      .figure .value b { font-size: 1.3rem; }
      .middle { display: none; }
      th, td { padding: 7px 8px; }
      th:first-child, td:first-child { padding-left: 11px; }
      th:last-child, td:last-child { padding-right: 11px; }
      tr.topic > th { width: auto; }
      .detail > td { padding: 10px 11px 14px; }
      .field, .field input { width: 100%; }
      .axis span:nth-child(even) { display: none; }
      .detail .scroll { max-width: calc(100vw - 50px); }
      /* So that the bar beside it can be seen. */
      .detail tbody th { white-space: normal; overflow-wrap: anywhere; min-width: 6.5rem; }
      .detail th, .detail td { padding: 6px 8px; }
    }
    """#
}
