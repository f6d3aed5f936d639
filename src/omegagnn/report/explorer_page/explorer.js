/** The page: its state, what changes it, and the address that remembers it. */
(() => {
  const byId = (id) => document.getElementById(id);
  const PRESETS = [
    ["A GCN forgets", "graph=grid&rows=5&columns=7&node=17&omega=1&steps=24"],
    ["ω = 0.3 remembers", "graph=grid&rows=5&columns=7&node=17&omega=0.3&steps=8"],
    ["ω = 1.2 overshoots", "graph=grid&rows=5&columns=7&node=17&omega=1.2&steps=3"],
    ["ω = 1.35 mixes signs", "graph=karate&node=0&omega=1.35&steps=1"],
    ["ω = −0.5 sharpens", "graph=karate&node=0&omega=-0.5&steps=4"],
    ["Beyond ω₀ it grows", "graph=ring&n=16&node=0&omega=1.8&steps=16"],
  ];
  const SAME_MOVE = 1500; // ms in which moves of one slider are one step of the history

  let state = null;
  let S = null;
  let shown = null; // the studies of the last rendering

  // ---- showing

  function render() {
    const { node, omega, steps } = state;
    const study = propagation.study(S, node, omega, steps);
    const gcn = omega === 1 ? study : propagation.study(S, node, 1, steps);
    shown = { study, gcn };
    showControls(study);
    const top = Math.max(study.top, gcn.top);
    gcnView.show(state, S, gcn, top);
    omegaView.show(state, S, study, top);
    byId("gcn-signs").textContent = words.signs(gcn);
    byId("omega-signs").textContent = words.signs(study);
    byId("omega-caption").replaceChildren(panels.html("i", "", "ω"), ` = ${colour.say(omega)}`);
    byId("energy-omega-name").textContent = `after L = ${steps}, share of the start`;
    panels.legend(byId("legend"), top);
    panels.energyChart(byId("energy-chart"), study, gcn);
    panels.omegaChart(byId("omega-chart"), S, state, study, gcn);
    panels.filterChart(byId("filter-chart"), S, state, study, gcn);
    showTables();
    announce();
  }

  function showControls(study) {
    const { omega, steps } = state;
    for (const [id, value] of [["omega", omega], ["steps", steps]]) {
      byId(id).value = value;
      const field = byId(`${id}-number`);
      if (field !== document.activeElement || Number(field.value) !== value) field.value = value;
    }
    byId("omega").setAttribute("aria-valuetext", `${colour.say(omega)}, ${study.kind}`);
    byId("kind").textContent = study.kind;
    byId("kind").className = `badge ${study.kind}`;
    byId("caption").textContent = words.caption(state, study, shown.gcn, S);
    byId("evidence").textContent = words.evidence(study);
    const fragment = address.write(state);
    for (const button of byId("presets").children) button.setAttribute("aria-pressed", button.dataset.fragment === fragment);
  }

  function showTables() {
    if (!byId("tables").open) return;
    const places = { nodes: byId("node-table"), energies: byId("energy-table"), eigenvalues: byId("spectrum-table") };
    panels.tables(places, state, S, shown.study, shown.gcn);
  }

  /** What belongs to the graph alone: its operator, the zones of ω, the fields of its parameters, its edge list. */
  function showGraph() {
    const { graph } = state;
    S = propagation.operator(graph);
    const { one, signs, critical } = propagation.thresholds(S);
    panels.rail(byId("rail"), byId("rail-marks"), { one, signs, critical });
    byId("thresholds").textContent = critical === Infinity
      ? "Without edges every ω is the identity."
      : `A GCN is at 1. Weights are non-negative from 0 to ${colour.say(signs)}. Smoothing ends at ${colour.say(critical)}.`;
    byId("graph").value = graph.spec.kind;
    byId("edges").value = graphs.list(graph);
    byId("parameters").replaceChildren(...graphs.KINDS[graph.spec.kind].parameters.map(parameterField));
  }

  function parameterField([name, label, low, high, , step]) {
    const field = Object.assign(document.createElement("input"), { type: "number", min: low, max: high, step, value: state.graph.spec[name] });
    field.id = `graph-${name}`;
    field.addEventListener("change", () => {
      const value = numberOf(field, label, low, high, step === 1);
      if (value === null) field.value = state.graph.spec[name];
      else {
        takeGraph(graphs.make({ ...state.graph.spec, [name]: value }));
        byId(field.id).focus();
      }
    });
    return panels.html("label", "", `${label} `, field);
  }

  /** Show one sentence about what went wrong, or take it away. */
  function tell(sentence) {
    byId("problem").textContent = sentence ?? "";
    byId("problem").hidden = !sentence;
  }

  /** Tell a screen reader what came of a change, when the change has come to rest. */
  const announce = (() => {
    let timer = 0;
    return () => {
      clearTimeout(timer);
      if (!player.isOn()) timer = setTimeout(() => { byId("announcement").textContent = words.announcement(state, shown.study); }, 600);
    };
  })();

  // ---- changing

  /** Take parts of a new state, show it, and remember it in the address as a move of the given name. */
  function take(parts, move) {
    player.stop();
    tell(null);
    const isNewGraph = parts.graph && parts.graph !== state?.graph;
    state = { ...state, ...parts };
    if (isNewGraph) showGraph();
    render();
    if (move) remember(move);
  }

  function takeGraph(graph) {
    const { kind, rows, columns } = graph.spec;
    const middle = kind === "grid" ? Math.floor(rows / 2) * columns + Math.floor(columns / 2) : 0;
    const isAlike = kind === state.graph.spec.kind && state.node < graph.n && kind !== "grid";
    take({ graph, node: isAlike ? state.node : middle }, "graph");
  }

  const choose = (node) => {
    if (node !== state.node) take({ node }, "node");
  };

  /** The number in a field, or null after telling what it must be. */
  function numberOf(field, name, low, high, isWhole) {
    const value = field.value === "" ? NaN : Number(field.value);
    if (value >= low && value <= high && (!isWhole || Number.isInteger(value))) return value;
    tell(`${name} must be ${isWhole ? "a whole number" : "a number"} from ${colour.say(low)} to ${colour.say(high)}.`);
    return null;
  }

  // ---- remembering

  let pending = 0;
  let last = { move: "", time: 0 };

  function remember(move) {
    clearTimeout(pending);
    const fragment = `#${address.write(state)}`; // now, as playing moves L meanwhile
    pending = setTimeout(() => {
      if (fragment === location.hash) return;
      const isSame = (move === "omega" || move === "steps") && move === last.move && performance.now() - last.time < SAME_MOVE;
      last = { move, time: performance.now() };
      if (isSame) history.replaceState(null, "", fragment);
      else history.pushState(null, "", fragment);
    }, move === "omega" || move === "steps" ? 250 : 0);
  }

  /** Read the state from the address: at the start, and when the user goes back or forward or edits it. */
  function recall() {
    clearTimeout(pending);
    last = { move: "", time: 0 };
    try {
      take(address.read(location.hash.slice(1) || address.START), null);
    } catch (error) {
      if (!state) take(address.read(address.START), null);
      tell(error.message);
    }
  }

  // ---- playing

  /** Play the steps from 0 to L; a second press stops, and L is what it was. */
  const player = (() => {
    let timer = 0;
    let goal = 0;
    const label = (isOn) => {
      const sign = panels.html("span", "", isOn ? "■" : "▶");
      sign.setAttribute("aria-hidden", "true");
      byId("play").replaceChildren(sign, isOn ? " Stop" : " Play");
    };

    function stop() {
      if (!timer) return;
      clearInterval(timer);
      timer = 0;
      state = { ...state, steps: goal };
      label(false);
      render();
    }
    function start() {
      if (state.steps === 0) take({ steps: 16 }, "steps");
      goal = state.steps;
      state = { ...state, steps: 0 };
      label(true);
      timer = setInterval(() => {
        if (state.steps + 1 >= goal) return stop();
        state = { ...state, steps: state.steps + 1 };
        render();
      }, Math.max(80, Math.min(400, 3600 / goal)));
      render();
    }
    return { isOn: () => timer !== 0, stop, toggle: () => (timer ? stop() : start()) };
  })();

  // ---- wiring

  const gcnView = graphView.create(byId("gcn-graph"), { isControl: false, choose });
  const omegaView = graphView.create(byId("omega-graph"), { isControl: true, choose });
  const pen = drawing.create(byId("omega-graph"), {
    state: () => state,
    change: (graph, node) => take({ graph, node }, "graph"),
    choose,
    tell,
  });

  function wireSlider(id, low, high, isWhole) {
    const [slider, field] = [byId(id), byId(`${id}-number`)];
    slider.addEventListener("input", () => take({ [id]: Number(slider.value) }, null));
    slider.addEventListener("change", () => remember(id));
    field.addEventListener("change", () => {
      const value = numberOf(field, id === "omega" ? "ω" : "L", low, high, isWhole);
      if (value === null) field.value = state[id];
      else take({ [id]: value }, id);
    });
  }

  function wireGraphs() {
    const select = byId("graph");
    select.append(...Object.entries(graphs.KINDS).map(([kind, { label }]) => new Option(label, kind)));
    select.addEventListener("change", () => {
      const kind = select.value;
      if (kind === "own") return takeGraph(graphs.own(state.graph.n, state.graph.edges, state.graph.names, state.graph.at));
      const usual = graphs.KINDS[kind].parameters.map(([name, , , , value]) => [name, value]);
      return takeGraph(graphs.make({ kind, ...Object.fromEntries(usual) }));
    });
    byId("edit").addEventListener("click", () => {
      const isOpen = byId("own").toggleAttribute("hidden") === false;
      byId("edit").setAttribute("aria-expanded", isOpen);
      if (isOpen) byId("edges").focus();
    });
    byId("own").addEventListener("submit", (event) => {
      event.preventDefault();
      try {
        take({ graph: graphs.parse(byId("edges").value), node: 0 }, "graph");
      } catch (error) {
        tell(error.message);
      }
    });
  }

  function wirePen() {
    byId("draw").addEventListener("click", () => {
      pen.setOn(!pen.isOn());
      byId("draw").setAttribute("aria-pressed", pen.isOn());
      byId("draw-tools").hidden = !pen.isOn();
    });
    byId("add-node").addEventListener("click", pen.add);
    byId("join-node").addEventListener("click", pen.join);
    byId("delete-node").addEventListener("click", pen.remove);
    byId("blank").addEventListener("click", () => take({ graph: graphs.blank(), node: 0 }, "graph"));
  }

  byId("presets").append(...PRESETS.map(([name, fragment]) => {
    const button = Object.assign(panels.html("button", "", name), { type: "button" });
    button.dataset.fragment = fragment;
    button.addEventListener("click", () => take(address.read(fragment), "preset"));
    return button;
  }));
  wireSlider("omega", address.OMEGA.low, address.OMEGA.high, false);
  wireSlider("steps", address.STEPS.low, address.STEPS.high, true);
  wireGraphs();
  wirePen();
  byId("play").addEventListener("click", player.toggle);
  byId("tables").addEventListener("toggle", showTables);
  window.addEventListener("popstate", recall);
  recall();

  /** All numbers on the page, for whoever wants to check them. */
  window.omegaExplorer = Object.freeze({
    state: () => ({
      graph: { kind: state.graph.spec.kind, n: state.graph.n, edges: state.graph.edges, names: state.graph.names },
      node: state.node, omega: state.omega, steps: state.steps,
      response: [...shown.study.response], gcnResponse: [...shown.gcn.response],
      energies: shown.study.energies, gcnEnergies: shown.gcn.energies,
      spectrum: S.eigenvalues, filter: shown.study.filter,
      thresholds: propagation.thresholds(S), kind: shown.study.kind, signPattern: shown.study.entries.pattern,
    }),
  });
})();
