/**
 * Graphs: undirected, without weights, up to LIMIT nodes. A graph is
 *   { spec: what to call it in the address, n, edges: [[i, j], …] with i < j, names: null or n words, at: n points }.
 * Every node has one self-loop in S, so loops in a list change nothing and repeated pairs count once.
 */
const graphs = (() => {
  const LIMIT = 200;

  // Zachary's karate club, nodes numbered from 0: each node with its neighbours of higher number.
  const KARATE =
    "0:1,2,3,4,5,6,7,8,10,11,12,13,17,19,21,31|1:2,3,7,13,17,19,21,30|2:3,7,8,9,13,27,28,32|3:7,12,13|4:6,10" +
    "|5:6,10,16|6:16|8:30,32,33|9:33|13:33|14:32,33|15:32,33|18:32,33|19:33|20:32,33|22:32,33|23:25,27,29,32,33" +
    "|24:25,27,31|25:31|26:29,33|27:33|28:31,33|29:32,33|30:32,33|31:32,33|32:33";

  /** What can be chosen, with the parameters of each: [name, label, smallest, largest, usual, step]. */
  const KINDS = {
    grid: { label: "Grid", parameters: [["rows", "Rows", 1, 14, 5, 1], ["columns", "Columns", 1, 14, 7, 1]] },
    ring: { label: "Ring", parameters: [["n", "Nodes", 3, LIMIT, 16, 1]] },
    path: { label: "Path", parameters: [["n", "Nodes", 1, LIMIT, 12, 1]] },
    karate: { label: "Karate club", parameters: [] },
    random: {
      label: "Erdős–Rényi",
      parameters: [["n", "Nodes", 1, LIMIT, 24, 1], ["p", "Edge probability", 0, 1, 0.12, 0.01], ["seed", "Seed", 0, 9999, 7, 1]],
    },
    own: { label: "Own", parameters: [] },
  };

  const pairs = (n) => Array.from({ length: Math.max(0, n - 1) }, (_, i) => [i, i + 1]);

  const makers = {
    ring: ({ n }) => [n, [...pairs(n), [0, n - 1]]],
    path: ({ n }) => [n, pairs(n)],
    grid: ({ rows, columns }) => {
      const edges = [];
      for (let i = 0; i < rows * columns; i++) {
        if ((i + 1) % columns) edges.push([i, i + 1]);
        if (i + columns < rows * columns) edges.push([i, i + columns]);
      }
      return [rows * columns, edges];
    },
    karate: () => {
      const edges = KARATE.split("|").flatMap((row) => {
        const [low, high] = row.split(":");
        return high.split(",").map((each) => [Number(low), Number(each)]);
      });
      return [34, edges];
    },
    random: ({ n, p, seed }) => {
      const draw = uniforms(seed);
      const edges = [];
      for (let i = 0; i < n; i++) for (let j = i + 1; j < n; j++) if (draw() < p) edges.push([i, j]);
      return [n, edges];
    },
  };

  /** Uniform numbers in [0, 1): a Weyl sequence of 32 bits, mixed by two multiplications; the same in every browser. */
  function uniforms(seed) {
    let counter = Math.imul(seed + 1, 0x9e3779b1);
    return () => {
      counter = (counter + 0x9e3779b1) | 0;
      let bits = Math.imul(counter ^ (counter >>> 16), 0x85ebca6b);
      bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
      return ((bits ^ (bits >>> 16)) >>> 8) / 2 ** 24;
    };
  }

  /** The graph of a spec such as { kind: "ring", n: 12 }. */
  function make(spec) {
    const [n, edges] = makers[spec.kind](spec);
    return Object.freeze({ spec, n, edges, names: null, at: layout.place(spec, n, edges) });
  }

  /** A graph of the user's own; without `at` it is laid out here. */
  function own(n, edges, names = null, at = null) {
    const tidy = simple(edges);
    return Object.freeze({ spec: { kind: "own" }, n, edges: tidy, names, at: at ?? layout.place({ kind: "own" }, n, tidy) });
  }

  /** Each pair once, the smaller end first, no loops. */
  function simple(edges) {
    const seen = new Map();
    for (const [a, b] of edges) {
      if (a !== b) seen.set(Math.min(a, b) * LIMIT + Math.max(a, b), [Math.min(a, b), Math.max(a, b)]);
    }
    return [...seen.values()];
  }

  /** Read a pasted edge list: two names a line, one name for a node without edges, # begins a comment. Throws a sentence. */
  function parse(text) {
    const index = new Map();
    const edges = [];
    const number = (name) => index.get(name) ?? (index.set(name, index.size), index.size - 1);
    text.split(/\r?\n/).forEach((line, row) => {
      const words = line.replace(/#.*/, "").split(/[\s,;]+/).filter(Boolean);
      if (words.length > 2) {
        throw new Error(`Line ${row + 1} has ${words.length} names: write two on a line, with a space or a comma between them.`);
      }
      const long = words.find((word) => word.length > 24);
      if (long) throw new Error(`Line ${row + 1} has a name of ${long.length} letters: use at most 24.`);
      const ends = words.map(number);
      if (ends.length === 2) edges.push(ends);
      if (index.size > LIMIT) {
        throw new Error(`From line ${row + 1} on there are more than the ${LIMIT} nodes this page can show: paste a part of the graph.`);
      }
    });
    if (!index.size) throw new Error("There is no edge yet: write two names on a line, such as “a b”.");
    return own(index.size, edges, tidyNames([...index.keys()]));
  }

  /** Names that are only the numbers 0, 1, 2 … in order need not be kept. */
  const tidyNames = (names) => (names.every((name, i) => name === String(i)) ? null : names);

  /** The edge list that `parse` would read back: edges first, then nodes that have none. */
  function list(graph) {
    const joined = new Set(graph.edges.flat());
    const rows = graph.edges.map(([a, b]) => `${nameOf(graph, a)} ${nameOf(graph, b)}`);
    for (let i = 0; i < graph.n; i++) if (!joined.has(i)) rows.push(nameOf(graph, i));
    return rows.join("\n");
  }

  const nameOf = (graph, node) => (graph.names ? graph.names[node] : String(node));

  /** The graph with one more node at a point, joined to `neighbour` where one is given. */
  function withNode(graph, point, neighbour = null) {
    if (graph.n >= LIMIT) throw new Error(`This page shows at most ${LIMIT} nodes: delete one first.`);
    const edges = neighbour === null ? graph.edges : [...graph.edges, [neighbour, graph.n]];
    let free = graph.n;
    while (graph.names?.includes(String(free))) free += 1;
    return own(graph.n + 1, edges, graph.names && [...graph.names, String(free)], [...graph.at, point.map(Math.round)]);
  }

  /** The graph without a node; the numbers above it move down by one. */
  function withoutNode(graph, node) {
    if (graph.n === 1) throw new Error("A graph keeps at least one node: add another before you delete this one.");
    const moved = (i) => (i > node ? i - 1 : i);
    const edges = graph.edges.filter((edge) => !edge.includes(node)).map((edge) => edge.map(moved));
    const rest = (values) => values && values.filter((_, i) => i !== node);
    return own(graph.n - 1, edges, rest(graph.names), rest(graph.at));
  }

  /** The graph with the edge a–b where there was none, without it where there was one. */
  function toggled(graph, a, b) {
    const others = graph.edges.filter(([i, j]) => !(i === Math.min(a, b) && j === Math.max(a, b)));
    const edges = others.length < graph.edges.length ? others : [...graph.edges, [a, b]];
    return own(graph.n, edges, graph.names, graph.at);
  }

  /** One node in the middle, to draw from. */
  const blank = () => own(1, [], null, [[layout.WIDTH / 2, layout.HEIGHT / 2]]);

  return Object.freeze({ LIMIT, KINDS, make, own, parse, list, nameOf, withNode, withoutNode, toggled, blank });
})();
