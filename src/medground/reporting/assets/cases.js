// Cases: a gallery that is filtered, and a viewer that is walked through with the keyboard.
{
  const PAGE = 24;
  const SVG = "http://www.w3.org/2000/svg";
  const OUTCOMES = { hit: "hit", miss: "miss", flat: "flat map", undefined: "undefined", failed: "failed" };
  const SCORES = { dice: "Dice", pointing: "pointing", iou: "IoU", score: "score", probability: "probability", distance: "distance of the peak" };
  const AGES = [40, 60, 80];
  const HASH = "#case=";
  const GROUPS = { all: "All that are kept", worst: "Worst", best: "Best", random: "Random", failed: "Failed or undefined" };
  const percent = (value) => (value === null || value === undefined ? "undefined" : `${(100 * value).toFixed(2)}\u00a0%`);
  const plain = (value) => (value === null || value === undefined ? "undefined" : value.toPrecision(4));

  // What is shown of one pair by one model: picture, map, outline, peak.
  class Stage {
    constructor(data, side) {
      this.data = data;
      this.side = side;
      this.picture = make("img", { alt: "", draggable: false });
      this.canvas = make("canvas", { "aria-hidden": "true" });
      this.lines = document.createElementNS(SVG, "svg");
      this.lines.setAttribute("preserveAspectRatio", "none");
      this.lines.setAttribute("aria-hidden", "true");
      this.element = make("span", { className: "stage" }, this.picture, this.canvas, this.lines);
    }

    async show(pair, model, settings) {
      const answer = pair.answers[model] || {};
      const size = pair.size || answer.source || (pair.outline ? pair.outline[1] : [1, 1]);
      const scale = this.side / Math.max(...size);
      this.element.style.aspectRatio = `${size[0]} / ${size[1]}`;
      this.element.style.maxWidth = `${this.side * Math.min(1, size[0] / size[1])}px`;
      this.picture.hidden = pair.picture === null;
      if (pair.picture !== null) this.picture.src = `data:image/webp;base64,${this.data.pictures[pair.picture]}`;
      this.picture.alt = `${pair.finding}, case ${pair.case}`;
      this.drawLines(pair, answer, settings);
      this.canvas.width = Math.max(1, Math.round(size[0] * scale));
      this.canvas.height = Math.max(1, Math.round(size[1] * scale));
      this.wanted = answer;
      if (!answer.map || settings.opacity === 0) return;
      const image = await Overlay.decode(answer.map, "png");
      if (this.wanted !== answer) return; // another pair was asked for meanwhile
      const cut = settings.mode === "heat" ? null : answer.cuts[settings.mode];
      if (cut === undefined) return;
      Overlay.paint(this.canvas, image, answer.at, { ...settings, cut, smooth: this.data.smooth, inclusive: this.data.inclusive });
    }

    drawLines(pair, answer, settings) {
      this.lines.replaceChildren();
      const frame = pair.outline ? pair.outline[1] : [1, 1];
      this.lines.setAttribute("viewBox", `0 0 ${frame[0]} ${frame[1]}`);
      if (pair.outline && settings.outline) for (const layer of ["halo", "truth"]) this.draw(layer, pair.outline[0]);
      if (answer.peak && settings.outline) {
        const [x, y] = [answer.peak[0] * frame[0], answer.peak[1] * frame[1]];
        const [w, h] = [0.022 * frame[0], 0.022 * frame[1]];
        const cross = `M${x - w} ${y - h}L${x + w} ${y + h}M${x - w} ${y + h}L${x + w} ${y - h}`;
        for (const layer of ["halo", "peak"]) this.draw(layer, cross);
      }
    }

    draw(layer, path) {
      const line = document.createElementNS(SVG, "path");
      line.setAttribute("class", layer);
      line.setAttribute("d", path);
      this.lines.append(line);
    }
  }

  class Gallery {
    constructor(root) {
      this.root = root;
      this.data = readBlock(root.dataset.block);
      this.state = { model: this.firstModel(), dataset: 0, finding: "", group: "worst", outcome: "", view: "", trait: "", sort: "", text: "", beside: "" };
      this.settings = { opacity: 0.6, mode: "heat", outline: true };
      this.viewer = new Viewer(this);
      this.addFilters();
      this.update();
    }

    // Yardsticks come last in a reader's interest.
    firstModel() {
      const judged = this.data.models.findIndex((_, k) => !this.data.baselines.includes(k));
      return Math.max(0, judged);
    }

    addFilters() {
      const filters = this.root.querySelector(".filters");
      const { models, datasets } = this.data;
      filters.append(this.select("Model", "model", models.map((name, k) => [k, name])));
      if (datasets.length > 1) filters.append(this.select("Dataset", "dataset", datasets.map((d, k) => [k, d.title])));
      const findings = make("span", { className: "slot" });
      const fill = () => {
        const names = datasets[this.state.dataset].findings;
        findings.replaceChildren(this.select("Finding", "finding", [["", "all"], ...names.map((name) => [name, name])]));
      };
      fill();
      this.refill = fill;
      filters.append(
        this.select("Show", "group", ["all", ...this.data.groups].map((group) => [group, GROUPS[group]])),
        findings,
        this.select("Outcome", "outcome", [["", "all"], ...Object.entries(OUTCOMES)]),
      );
      const views = this.values((pair) => (pair.view === null ? [] : [pair.view]));
      if (views.length > 1) filters.append(this.select("View", "view", [["", "all"], ...views.map((view) => [view, view])]));
      const traits = this.values((pair) => this.traits(pair));
      if (traits.length > 1) filters.append(this.select("Subgroup", "trait", [["", "all"], ...traits.map((name) => [name, name])]));
      const orders = Object.entries(SCORES).flatMap(([key, name]) => [[`${key} up`, `${name}, smallest first`], [`${key} down`, `${name}, largest first`]]);
      filters.append(this.select("Sort", "sort", [["", "as listed"], ...orders]));
      const search = make("input", { type: "search", size: 10 });
      search.addEventListener("input", () => {
        this.state.text = search.value.trim().toLowerCase();
        this.update();
      });
      filters.append(make("label", {}, "Case id ", search));
    }

    // What a filter offers: every value that a kept pair has, in order.
    values(of) {
      return [...new Set(this.data.pairs.flatMap(of))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    }

    // A pair's groups; ages are cut as the summary cuts them.
    traits(pair) {
      return Object.entries(pair.traits || {}).map(([name, value]) => {
        const age = name === "age" && value !== "" ? Number(value) : NaN;
        if (Number.isNaN(age)) return `${name}: ${value}`;
        const place = AGES.filter((edge) => age >= edge).length;
        if (place === 0) return `age: below ${AGES[0]}`;
        return place === AGES.length ? `age: ${AGES[place - 1]} and above` : `age: ${AGES[place - 1]} to below ${AGES[place]}`;
      });
    }

    select(label, key, choices) {
      const select = make("select", {}, ...choices.map(([value, text]) => make("option", { value: String(value) }, text)));
      select.value = String(this.state[key]);
      select.addEventListener("change", () => {
        const chosen = choices[select.selectedIndex][0];
        this.state[key] = chosen;
        if (key === "dataset") {
          this.state.finding = "";
          this.refill();
        }
        this.update();
      });
      return make("label", {}, `${label} `, select);
    }

    list() {
      const { model, dataset, finding, group, outcome, view, trait, sort, text } = this.state;
      const lists = this.data.lists.find((entry) => entry.model === model && entry.dataset === dataset);
      const of = lists && lists.of[finding];
      const kept = group === "all" ? this.everything(finding) : of ? of[group] : this.fromAll(lists, finding, group);
      const pairs = kept.map((k) => this.data.pairs[k]).filter((pair) =>
        (!outcome || pair.answers[model].outcome === outcome) &&
        (!view || pair.view === view) &&
        (!trait || this.traits(pair).includes(trait)) &&
        (!text || pair.case.toLowerCase().includes(text)));
      return sort ? this.sorted(pairs, ...sort.split(" ")) : pairs;
    }

    everything(finding) {
      const { model, dataset } = this.state;
      const own = (pair) => pair.dataset === dataset && pair.answers[model] && (!finding || pair.finding === finding);
      return this.data.pairs.flatMap((pair, k) => (own(pair) ? [k] : []));
    }

    // By a score, undefined last; equal ones by how far the peak lies from the region, then by id.
    sorted(pairs, key, way) {
      const of = (pair, name) => {
        const value = pair.answers[this.state.model][name];
        return value === undefined ? null : value;
      };
      const compare = (a, b, name, sign) => {
        const [x, y] = [of(a, name), of(b, name)];
        if (x === null || y === null) return (x === null) - (y === null);
        return sign * (x - y);
      };
      const sign = way === "up" ? 1 : -1;
      return [...pairs].sort((a, b) =>
        compare(a, b, key, sign) || compare(a, b, "distance", 1) || a.case.localeCompare(b.case) || a.finding.localeCompare(b.finding));
    }

    // A long run keeps no list of its own for every finding: take those of the whole list.
    fromAll(lists, finding, group) {
      return lists ? lists.of[""][group].filter((k) => this.data.pairs[k].finding === finding) : [];
    }

    // Show a case that a link names, whatever the filters say; false where it is not kept here.
    reveal(id, finding) {
      const pair = this.data.pairs.find((one) => one.case === id && one.finding === finding);
      if (!pair) return false;
      const models = Object.keys(pair.answers).map(Number);
      if (!models.includes(this.state.model)) this.state.model = models[0];
      const place = this.pairs.indexOf(pair);
      if (place < 0) this.pairs.unshift(pair);
      this.viewer.open(Math.max(place, 0));
      return true;
    }

    update() {
      this.pairs = this.list();
      this.root.querySelector(".gallery").replaceChildren();
      this.shown = 0;
      this.more();
      const { group, sort } = this.state;
      const n = this.pairs.length;
      const order = sort ? "sorted, ties by the distance of the peak" : { all: "in order", worst: "worst first", best: "best first", random: "drawn at random", failed: "in order" }[group];
      this.root.querySelector(".shown").textContent = n
        ? `${n} ${n === 1 ? "case" : "cases"}, ${order}.`
        : "None of the cases kept in this report.";
    }

    more() {
      const gallery = this.root.querySelector(".gallery");
      for (const [k, pair] of this.pairs.slice(this.shown, this.shown + PAGE).entries()) gallery.append(this.card(pair, this.shown + k));
      this.shown = Math.min(this.shown + PAGE, this.pairs.length);
      const left = this.pairs.length - this.shown;
      const button = make("button", { type: "button" }, `Show ${Math.min(left, PAGE)} more`);
      button.addEventListener("click", () => this.more());
      this.root.querySelector(".more").replaceChildren(...(left ? [button] : []));
    }

    card(pair, place) {
      const answer = pair.answers[this.state.model];
      const stage = new Stage(this.data, 224);
      stage.show(pair, this.state.model, { ...this.settings, mode: "heat", outline: true });
      const button = make(
        "button",
        { type: "button", className: `card ${answer.outcome}` },
        stage.element,
        make("span", { className: "finding" }, pair.finding),
        make("span", { className: "case" }, pair.case),
        make("span", { className: "score" }, `${OUTCOMES[answer.outcome]}, Dice ${percent(answer.dice)}`),
      );
      button.addEventListener("click", () => this.viewer.open(place));
      return make("li", {}, button);
    }
  }

  class Viewer {
    constructor(gallery) {
      this.gallery = gallery;
      this.stage = new Stage(gallery.data, 768);
      this.second = new Stage(gallery.data, 768);
      this.names = [make("figcaption", {}), make("figcaption", {})];
      this.title = make("h3", { id: `${gallery.root.dataset.block}-title` });
      this.facts = make("dl", { className: "scores" });
      this.models = make("div", { className: "models", role: "group", "aria-label": "Model" });
      this.position = make("span", { className: "position", role: "status", "aria-live": "polite" });
      this.note = make("p", { className: "note" });
      this.dialog = make("dialog", { className: "case-view", "aria-labelledby": this.title.id }, this.layout());
      this.dialog.addEventListener("keydown", (event) => this.key(event));
      this.dialog.addEventListener("close", () => history.replaceState(null, "", location.pathname + location.search));
      gallery.root.append(this.dialog);
    }

    layout() {
      const button = (text, label, work) => {
        const made = make("button", { type: "button", "aria-label": label }, text);
        made.addEventListener("click", work);
        return made;
      };
      const bar = make(
        "div",
        { className: "bar" },
        button("←", "Previous case", () => this.step(-1)),
        this.position,
        button("→", "Next case", () => this.step(1)),
        button("Close", "Close", () => this.dialog.close()),
      );
      const hint = "Keys: ← → case, ↑ ↓ model, − + opacity, o outline, m map, Esc close";
      const side = make("div", { className: "side" }, this.title, this.controls(), make("p", { className: "beside" }, make("label", {}, "Beside it ", this.beside)), this.models, this.facts, this.note, make("p", { className: "keys" }, hint));
      return make("div", { className: "frame" }, bar, make("div", { className: "scene" }, make("figure", {}, this.stage.element, this.names[0]), (this.other = make("figure", { hidden: true }, this.second.element, this.names[1]))), side);
    }

    controls() {
      const settings = this.gallery.settings;
      this.opacity = make("input", { type: "range", min: 0, max: 1, step: 0.05, value: settings.opacity });
      this.opacity.addEventListener("input", () => this.set("opacity", Number(this.opacity.value)));
      this.mode = make("select", {});
      this.mode.addEventListener("change", () => this.set("mode", this.mode.value));
      this.outline = make("input", { type: "checkbox", checked: settings.outline });
      this.outline.addEventListener("change", () => this.set("outline", this.outline.checked));
      this.beside = make("select", {}, make("option", { value: "" }, "nobody"), ...this.gallery.data.models.map((name, k) => make("option", { value: String(k) }, name)));
      this.beside.addEventListener("change", () => {
        this.gallery.state.beside = this.beside.value;
        this.show();
      });
      return make(
        "div",
        { className: "controls" },
        make("label", {}, "Map ", this.mode),
        make("label", {}, "Opacity ", this.opacity),
        make("label", {}, this.outline, " True region and peak"),
      );
    }

    set(key, value) {
      this.gallery.settings[key] = value;
      this.opacity.value = this.gallery.settings.opacity;
      this.outline.checked = this.gallery.settings.outline;
      this.mode.value = this.gallery.settings.mode;
      this.draw();
    }

    // The stage, and a second model's beside it where one is chosen that answered about the same pair.
    draw() {
      const { data, state, settings } = this.gallery;
      this.stage.show(this.pair, state.model, settings);
      const other = state.beside === "" || Number(state.beside) === state.model ? undefined : this.pair.answers[state.beside];
      this.other.hidden = other === undefined;
      this.names[0].textContent = other === undefined ? "" : data.models[state.model];
      if (other === undefined) return;
      this.second.show(this.pair, Number(state.beside), settings);
      this.names[1].textContent = `${data.models[state.beside]}: ${OUTCOMES[other.outcome]}, Dice ${percent(other.dice)}`;
    }

    open(place) {
      this.place = place;
      this.show();
      if (!this.dialog.open) this.dialog.showModal();
    }

    // The address of the page names the open case, so that it can be sent.
    link(pair) {
      return `${HASH}${encodeURIComponent(pair.case)}/${encodeURIComponent(pair.finding)}`;
    }

    step(by) {
      const n = this.gallery.pairs.length;
      this.place = (this.place + by + n) % n;
      this.show();
    }

    pick(model) {
      this.gallery.state.model = model;
      this.gallery.root.querySelector(".filters select").value = String(model);
      const pair = this.pair;
      this.gallery.update();
      // The pair stays in view even where the other model's list does not hold it.
      const found = this.gallery.pairs.indexOf(pair);
      if (found < 0) this.gallery.pairs.unshift(pair);
      this.place = Math.max(found, 0);
      this.show();
    }

    get pair() {
      return this.gallery.pairs[this.place];
    }

    show() {
      const { data, state, settings } = this.gallery;
      const { pair } = this;
      const answer = pair.answers[state.model] || {};
      this.title.replaceChildren(pair.finding, make("small", {}, pair.case));
      this.position.textContent = `${this.place + 1} of ${this.gallery.pairs.length}`;
      this.fillModes(answer);
      this.draw();
      history.replaceState(null, "", this.link(pair));
      this.models.replaceChildren(
        ...Object.entries(pair.answers).map(([model, own]) => {
          const pressed = String(Number(model) === state.model);
          const made = make("button", { type: "button", "aria-pressed": pressed }, make("span", {}, data.models[model]), make("small", {}, `${OUTCOMES[own.outcome]}, Dice ${percent(own.dice)}`));
          made.addEventListener("click", () => this.pick(Number(model)));
          return made;
        }),
      );
      const rows = [
        ["Outcome", OUTCOMES[answer.outcome] + (answer.reason ? `: ${answer.reason}` : "")],
        ["Pointing", plain(answer.pointing)],
        [`Dice at ${data.fixed}`, percent(answer.dice_fixed)],
        [`Dice at searched τ${answer.tau === null ? "" : ` = ${answer.tau}`}${data.optimistic ? " (optimistic)" : ""}`, percent(answer.dice)],
        ["IoU at searched τ", percent(answer.iou)],
        ["Dice of all foreground", percent(answer.floor)],
        ["Score", plain(answer.score)],
        ["Probability", plain(answer.probability)],
        ["Region", pair.share === null ? "unknown" : `${percent(pair.share)} of the picture`],
        ["View", pair.view === null ? "unknown" : pair.view],
        ["Peak from the region", answer.distance === null || answer.distance === undefined ? "undefined" : `${percent(answer.distance)} of the longer side`],
        ...Object.entries(pair.traits || {}).map(([name, value]) => [name.charAt(0).toUpperCase() + name.slice(1), value]),
        ["Model's grid", answer.grid ? `${answer.grid.join(" × ")}${String(answer.grid) === String(answer.shown) ? "" : `, shown at ${answer.shown.join(" × ")}`}` : "no map is kept"],
      ];
      this.facts.replaceChildren(...rows.map(([name, text]) => make("div", {}, make("dt", {}, name), make("dd", {}, text))));
      this.note.textContent = pair.picture === null ? `No picture: ${pair.note || "none is kept"}.` : "";
    }

    fillModes(answer) {
      const { data, settings } = this.gallery;
      const choices = [["heat", "heat map"]];
      if (answer.cuts) choices.push(["fixed", `selected at ${data.fixed}`]);
      if (answer.cuts && answer.cuts.searched !== undefined) choices.push(["searched", `selected at searched τ = ${answer.tau}`]);
      if (!choices.some(([value]) => value === settings.mode)) settings.mode = "heat";
      this.mode.replaceChildren(...choices.map(([value, text]) => make("option", { value }, text)));
      this.mode.value = settings.mode;
    }

    key(event) {
      if (event.target.matches("select, input[type=range]") && event.key.startsWith("Arrow")) return;
      const { settings, state } = this.gallery;
      const models = Object.keys(this.pair.answers).map(Number);
      const turn = (by) => this.pick(models[(models.indexOf(state.model) + by + models.length) % models.length]);
      const opacity = (by) => this.set("opacity", Math.min(1, Math.max(0, settings.opacity + by)));
      const modes = [...this.mode.options].map((option) => option.value);
      const work = {
        ArrowLeft: () => this.step(-1),
        ArrowRight: () => this.step(1),
        ArrowUp: () => turn(-1),
        ArrowDown: () => turn(1),
        "-": () => opacity(-0.1),
        "+": () => opacity(0.1),
        o: () => this.set("outline", !settings.outline),
        m: () => this.set("mode", modes[(modes.indexOf(settings.mode) + 1) % modes.length]),
      }[event.key];
      if (!work || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      work();
    }
  }

  // The data of the cases is read when they come near the window, which keeps the page quick to open.
  const nearby = new IntersectionObserver(
    (entries) => {
      for (const entry of entries.filter((e) => e.isIntersecting)) {
        nearby.unobserve(entry.target);
        entry.target.gallery ||= new Gallery(entry.target);
      }
    },
    { rootMargin: "600px" },
  );
  // A link to a case opens it, in whichever gallery keeps it.
  function follow() {
    if (!location.hash.startsWith(HASH)) return;
    const [id, finding] = location.hash.slice(HASH.length).split("/").map(decodeURIComponent);
    for (const root of document.querySelectorAll(".viewer")) {
      nearby.unobserve(root);
      root.gallery ||= new Gallery(root);
      if (root.gallery.reveal(id, finding)) return;
    }
  }
  for (const root of document.querySelectorAll(".viewer")) nearby.observe(root);
  window.addEventListener("hashchange", follow);
  follow();
  window.addEventListener("beforeprint", () => {
    for (const root of document.querySelectorAll(".viewer")) {
      if (!root.querySelector(".filters").childElementCount) {
        nearby.unobserve(root);
        root.gallery ||= new Gallery(root);
      }
    }
  });
}
