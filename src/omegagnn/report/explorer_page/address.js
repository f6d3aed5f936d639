/**
 * The state of the page as the fragment of its address, such as
 *   #graph=ring&n=16&node=0&omega=0.3&steps=8
 *   #graph=own&n=3&edges=0-1,1-2&names=a,b,c&at=40.60,200.150,300.80&node=0&omega=0.3&steps=8
 */
const address = (() => {
  const OMEGA = { low: -1, high: 2.5 };
  const STEPS = { low: 0, high: 64 };
  const START = "graph=grid&rows=5&columns=7&node=17&omega=0.3&steps=8";

  function write({ graph, node, omega, steps }) {
    const parts = [`graph=${graph.spec.kind}`];
    if (graph.spec.kind === "own") {
      parts.push(`n=${graph.n}`, `edges=${graph.edges.map((edge) => edge.join("-")).join(",")}`);
      if (graph.names) parts.push(`names=${graph.names.map(encodeURIComponent).join(",")}`);
      parts.push(`at=${graph.at.map((point) => point.map(Math.round).join(".")).join(",")}`);
    }
    for (const [name] of graphs.KINDS[graph.spec.kind].parameters) parts.push(`${name}=${graph.spec[name]}`);
    return [...parts, `node=${node}`, `omega=${omega}`, `steps=${steps}`].join("&");
  }

  /** The state that a fragment describes; what it leaves out takes its usual value, what is wrong throws a sentence. */
  function read(fragment) {
    const given = Object.fromEntries(fragment.split("&").map((part) => {
      const cut = part.indexOf("=");
      return cut < 0 ? [part, ""] : [part.slice(0, cut), part.slice(cut + 1)];
    }));
    const kind = given.graph;
    if (!Object.hasOwn(graphs.KINDS, kind ?? "")) {
      throw new Error(`The address names no graph that this page knows: choose one below.`);
    }
    const graph = kind === "own" ? ownGraph(given) : knownGraph(kind, given);
    return {
      graph,
      node: number(given, "node", 0, graph.n - 1, 0, true),
      omega: number(given, "omega", OMEGA.low, OMEGA.high, 1, false),
      steps: number(given, "steps", STEPS.low, STEPS.high, 8, true),
    };
  }

  function knownGraph(kind, given) {
    const spec = { kind };
    for (const [name, , low, high, usual, step] of graphs.KINDS[kind].parameters) {
      spec[name] = number(given, name, low, high, usual, step === 1);
    }
    return graphs.make(spec);
  }

  function ownGraph(given) {
    const n = number(given, "n", 1, graphs.LIMIT, 1, true);
    const edges = list(given.edges).map((edge) => edge.split("-").map(Number));
    const names = given.names ? list(given.names).map(decoded) : null;
    const at = given.at ? list(given.at).map((point) => point.split(".").map(Number)) : null;
    const isEnd = (end) => Number.isInteger(end) && end >= 0 && end < n;
    const whole =
      edges.every((edge) => edge.length === 2 && edge.every(isEnd)) &&
      (!names || (names.length === n && new Set(names).size === n && names.every(Boolean))) &&
      (!at || (at.length === n && at.every((point) => point.length === 2 && point.every(Number.isFinite))));
    if (!whole) throw new Error("The graph in the address is damaged: copy the whole address, or paste its edges below.");
    return graphs.own(n, edges, names, at);
  }

  /** A name as it was; empty where its percent signs mean nothing, which `whole` refuses. */
  function decoded(text) {
    try {
      return decodeURIComponent(text);
    } catch {
      return "";
    }
  }

  const list = (text) => (text ? text.split(",") : []);

  function number(given, name, low, high, usual, isWhole) {
    if (given[name] === undefined) return usual;
    const value = Number(given[name] || NaN);
    if (!(value >= low && value <= high) || (isWhole && !Number.isInteger(value))) {
      const wanted = isWhole ? "a whole number" : "a number";
      throw new Error(`The address says ${name}=${given[name].slice(0, 20)}, but it must be ${wanted} from ${low} to ${high}.`);
    }
    return value;
  }

  return Object.freeze({ OMEGA, STEPS, START, write, read });
})();
