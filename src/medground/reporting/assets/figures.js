// Figures: plotly draws, the page gives colours and fonts. Drawn when the page is idle, the first ones first.
{
  // Okabe and Ito's colours, told apart by every kind of colour vision; yellow is too pale for a line on white.
  const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7a5195", "#8c6d31"];

  function look() {
    const style = getComputedStyle(document.documentElement);
    const get = (name) => style.getPropertyValue(name).trim();
    return { ink: get("--ink"), muted: get("--muted"), rule: get("--rule"), font: getComputedStyle(document.body).fontFamily };
  }

  function coloured(trace, { muted }) {
    const series = trace.meta.series;
    const colour = series === "grey" ? muted : COLOURS[series % COLOURS.length];
    const marker = { ...trace.marker, color: colour };
    marker.line = { ...(trace.marker || {}).line, color: colour };
    const painted = { ...trace, type: "scatter", marker, line: { ...trace.line, color: colour } };
    for (const bars of ["error_x", "error_y"]) if (trace[bars]) painted[bars] = { ...trace[bars], color: colour };
    if (trace.hovertemplate) painted.hovertemplate = `${trace.hovertemplate}<extra>${trace.name || ""}</extra>`;
    return painted;
  }

  // The legend lies below the plot and makes room for itself.
  function legendRows(traces, width) {
    const names = traces.filter((trace) => trace.showlegend !== false).map((trace) => trace.name || "");
    const needed = names.reduce((sum, name) => sum + 7.2 * name.length + 52, 0);
    return Math.ceil(needed / Math.max(200, width - 80));
  }

  function laidOut(layout, traces, width, { ink, rule, font }) {
    const axis = { gridcolor: rule, linecolor: rule, tickcolor: rule, automargin: true, fixedrange: true };
    const height = (layout.height || 340) + 24 * legendRows(traces, width);
    const full = {
      font: { family: font, size: 13, color: ink },
      paper_bgcolor: "transparent",
      plot_bgcolor: "transparent",
      margin: { l: 56, r: 16, t: 8, b: 48 },
      legend: { orientation: "h", y: -64 / ((layout.height || 340) - 70), yanchor: "top", x: 0, xanchor: "left" },
      showlegend: traces.some((trace) => trace.showlegend !== false),
      hovermode: "closest",
      dragmode: false,
      ...layout,
      height,
    };
    for (const key of Object.keys(layout).filter((name) => /^[xy]axis/.test(name))) {
      full[key] = { ...axis, ...layout[key] };
      if (full[key].title) full[key].title = { ...full[key].title, font: { size: 13 }, standoff: 10 };
    }
    return full;
  }

  // A view box lets style sheets scale a figure to the paper.
  function scalable(canvas) {
    for (const svg of canvas.querySelectorAll("svg.main-svg")) {
      svg.setAttribute("viewBox", `0 0 ${svg.width.baseVal.value} ${svg.height.baseVal.value}`);
    }
  }

  async function draw(figure, choice) {
    const canvas = document.getElementById(figure.anchor);
    const theme = look();
    const traces = figure.choices[choice][1].map((trace) => coloured(trace, theme));
    const layout = laidOut(figure.layout, traces, canvas.clientWidth, theme);
    await Plotly.react(canvas, traces, layout, { displayModeBar: false, responsive: true });
    if (!canvas.dataset.drawn) canvas.on("plotly_afterplot", () => scalable(canvas));
    canvas.dataset.drawn = "yes";
    scalable(canvas);
  }

  const idle = window.requestIdleCallback || ((work) => setTimeout(work, 1));
  const waiting = readBlock("figures");
  const byAnchor = new Map(waiting.map((figure) => [figure.anchor, figure]));

  for (const select of document.querySelectorAll("select[data-figure]")) {
    select.addEventListener("change", () => draw(byAnchor.get(select.dataset.figure), select.selectedIndex));
  }
  for (const button of document.querySelectorAll("button[data-save]")) {
    const filename = button.dataset.save;
    button.addEventListener("click", () => Plotly.downloadImage(filename, { format: "svg", filename }));
  }

  function next() {
    const figure = waiting.shift();
    if (figure) draw(figure, 0).then(() => idle(next));
    else document.documentElement.dataset.figures = "drawn";
  }
  idle(next);
  window.addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details.on-paper")) details.open = true;
    waiting.splice(0).forEach((figure) => draw(figure, 0));
  });
}
