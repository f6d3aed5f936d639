/**
 * The drawing of a graph with a value on every node. Colour, size and a sign say the value; the node of the impulse wears
 * a ring. In the drawing that takes the choice, nodes are radio buttons: one tab stop, arrow keys go to the next node in
 * their direction.
 */
const graphView = (() => {
  const { element } = charts;
  const DIRECTIONS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

  /** A view on an svg element; `choose(node)` is called when a node is chosen by pointer or key. */
  function create(svg, { isControl, choose }) {
    svg.setAttribute("viewBox", `0 0 ${layout.WIDTH} ${layout.HEIGHT}`);
    svg.setAttribute("role", isControl ? "radiogroup" : "img");
    let drawn = null;
    let nodes = [];

    /** Show a state: the graph, which node has the impulse, and a study whose response is coloured on a scale to ±top. */
    function show({ graph, node }, S, study, top) {
      const hadFocus = svg.contains(document.activeElement);
      if (graph !== drawn) {
        nodes = build(svg, graph, isControl);
        drawn = graph;
      }
      nodes.forEach((parts, i) => paint(parts, study.response[i], top, i === node));
      if (isControl) {
        nodes.forEach(({ group }, i) => {
          group.setAttribute("aria-label", words.nodeLabel(graph, S, i, study.response[i]));
          group.setAttribute("aria-checked", i === node);
          group.setAttribute("tabindex", i === node ? 0 : -1);
        });
        if (hadFocus) nodes[node].group.focus();
      } else {
        svg.setAttribute("aria-label", `GCN response. ${words.signs(study)}`);
      }
    }

    svg.addEventListener("click", (event) => {
      const group = event.target.closest(".node");
      if (group && !svg.classList.contains("drawing")) choose(Number(group.dataset.node));
    });
    if (isControl) {
      svg.addEventListener("keydown", (event) => {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        const from = nodes.findIndex(({ group }) => group === document.activeElement);
        const next = from < 0 ? null : nextNode(drawn, from, event.key);
        if (next === null) return;
        event.preventDefault();
        choose(next);
        nodes[next].group.focus();
      });
    }
    return { show };
  }

  /** The node that a key leads to: the nearest in its direction, straight ahead before aside. */
  function nextNode(graph, from, key) {
    if (key === "Home") return 0;
    if (key === "End") return graph.n - 1;
    if (key === " " || key === "Enter") return from;
    const direction = DIRECTIONS[key];
    if (!direction) return null;
    let [best, least] = [from, Infinity];
    graph.at.forEach(([x, y], i) => {
      const [dx, dy] = [x - graph.at[from][0], y - graph.at[from][1]];
      const ahead = dx * direction[0] + dy * direction[1];
      const cost = ahead + 2.5 * Math.abs(dx * direction[1] - dy * direction[0]);
      if (i !== from && ahead > 0.5 && cost < least) [best, least] = [i, cost];
    });
    return best;
  }

  /** The largest radius of a node in a graph of n. */
  const radius = (n) => Math.min(12.5, 78 / Math.sqrt(n));

  function build(svg, graph, isControl) {
    // One path for all edges: thousands of elements would make every redrawing slow.
    const lines = graph.edges.map(([a, b]) => `M${graph.at[a].join(" ")}L${graph.at[b].join(" ")}`);
    const edges = element("path", { class: "edges", d: lines.join(""), "aria-hidden": "true" });
    const largest = radius(graph.n);
    const nodes = graph.at.map(([x, y], i) => {
      const body = element("circle", { class: "body" });
      const glyph = element("text", { class: "glyph", "text-anchor": "middle", dy: "0.36em" });
      const title = element("title");
      const group = element(
        "g",
        { class: "node", "data-node": i, transform: `translate(${x} ${y})`, ...(isControl ? { role: "radio" } : {}) },
        element("circle", { class: "hit", r: Math.max(largest, Math.min(16, 110 / Math.sqrt(graph.n))) }),
        element("circle", { class: "ring", r: largest + 3.5 }), body, glyph, title,
      );
      return { group, body, glyph, title, largest, name: graphs.nameOf(graph, i) };
    });
    svg.replaceChildren(edges, element("g", {}, ...nodes.map(({ group }) => group)));
    return nodes;
  }

  function paint({ group, body, glyph, title, largest, name }, value, top, isChosen) {
    const size = Math.abs(colour.position(value, top));
    body.setAttribute("r", (largest * (0.6 + 0.4 * size)).toFixed(2));
    body.setAttribute("fill", colour.of(value, top));
    glyph.setAttribute("fill", colour.ink(value, top));
    glyph.textContent = largest < 7 || size < 0.02 ? "" : value > 0 ? "+" : "−";
    title.textContent = `node ${name}: ${colour.say(value)}`;
    group.classList.toggle("chosen", isChosen);
  }

  return Object.freeze({ create, radius });
})();
