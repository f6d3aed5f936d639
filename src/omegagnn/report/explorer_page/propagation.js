/**
 * The mathematics of the page. With Ã = A + I and D̃ its row sums, S = D̃^-½ Ã D̃^-½ and L̃ = I − S; one propagation is
 *   P_ω f = (I − ω(I − S)) f = f − ω L̃ f,
 * a GCN for ω = 1. Its response to an impulse δ on one node after L steps is f^(L) = P_ω^L δ.
 */
const propagation = (() => {
  const ROUNDING = 1e-12; // of an eigenvalue or an entry, in float64

  /** S of a graph: the degrees d_i (without the loop), 1/√d̃_i with d̃_i = 1 + d_i, neighbours, and all eigenvalues of L̃. */
  function operator(graph) {
    const neighbours = Array.from({ length: graph.n }, () => []);
    for (const [a, b] of graph.edges) {
      neighbours[a].push(b);
      neighbours[b].push(a);
    }
    const degree = neighbours.map((each) => each.length);
    const scale = degree.map((d) => 1 / Math.sqrt(1 + d));
    const S = { n: graph.n, edges: graph.edges, neighbours, degree, scale };
    return Object.freeze({ ...S, eigenvalues: spectrum.eigenvalues(laplacian(S), -0.1, 2.1) });
  }

  /** The dense L̃ = I − S. */
  function laplacian({ n, edges, degree, scale }) {
    const rows = degree.map((d, i) => {
      const row = new Float64Array(n);
      row[i] = d / (1 + d);
      return row;
    });
    for (const [a, b] of edges) rows[a][b] = rows[b][a] = -scale[a] * scale[b];
    return rows;
  }

  /** z_i = f_i − ω (f_i − Σ_j S_ij f_j), S_ij = 1/√(d̃_i d̃_j) over the neighbours of i and i itself. */
  function propagate(S, f, omega) {
    return f.map((value, i) => {
      let mean = S.scale[i] * value;
      for (const j of S.neighbours[i]) mean += S.scale[j] * f[j];
      return value - omega * (value - S.scale[i] * mean);
    });
  }

  /** f^(0) … f^(L) for an impulse on `node`. */
  function trajectory(S, node, omega, steps) {
    const course = [new Float64Array(S.n)];
    course[0][node] = 1;
    for (let l = 0; l < steps; l++) course.push(propagate(S, course[l], omega));
    return course;
  }

  /** Dirichlet energy E(f) = ½ Σ_i Σ_{j ∈ N_i} (f_i/√d̃_i − f_j/√d̃_j)² = fᵀ L̃ f; each edge stands here once. */
  function energy(S, f) {
    let sum = 0;
    for (const [a, b] of S.edges) sum += (S.scale[a] * f[a] - S.scale[b] * f[b]) ** 2;
    return sum;
  }

  /** The three values of ω that part the operators: 1, min_i 1/(1 − S_ii) = 1 + 1/d_max, and ω₀ = 2/ρ(L̃). */
  function thresholds(S) {
    const largest = Math.max(...S.degree);
    if (!S.edges.length) return { one: 1, signs: Infinity, critical: Infinity };
    return { one: 1, signs: (1 + largest) / largest, critical: 2 / S.eigenvalues.at(-1) };
  }

  /** What P_ω is: see `omegagnn.analysis.operator_kind`, which has the same four words. */
  function kind(S, omega) {
    const { signs, critical } = thresholds(S);
    if (omega === 0 || critical === Infinity) return "identity";
    if (omega < 0 || omega > critical * (1 + ROUNDING)) return "sharpening";
    return omega <= signs * (1 + ROUNDING) ? "smoothing" : "mixed-sign";
  }

  /** The entries of P_ω themselves: 1 − ω d_i/(1 + d_i) on the diagonal, ω/√(d̃_i d̃_j) beside it. */
  function entries(S, omega) {
    const small = ROUNDING * Math.max(1, Math.abs(omega));
    const found = { negative: 0, positive: 0, smallest: Infinity };
    const count = (value, times) => {
      found.negative += value < -small ? times : 0;
      found.positive += value > small ? times : 0;
      found.smallest = Math.min(found.smallest, value);
    };
    for (const d of S.degree) count(1 - (omega * d) / (1 + d), 1);
    for (const [a, b] of S.edges) count(omega * S.scale[a] * S.scale[b], 2);
    const pattern = !found.negative ? "non-negative" : found.positive ? "mixed" : "non-positive";
    return { ...found, pattern };
  }

  /** The filter h(λ) = (1 − ωλ)^L that L propagations are to a frequency λ of the graph. */
  const filter = (lambda, omega, steps) => (1 - omega * lambda) ** steps;

  /** Everything the page shows about one ω. */
  function study(S, node, omega, steps) {
    const course = trajectory(S, node, omega, steps);
    const response = course[steps];
    return {
      omega, course, response,
      energies: course.map((f) => energy(S, f)),
      filter: S.eigenvalues.map((lambda) => filter(lambda, omega, steps)),
      kind: kind(S, omega),
      entries: entries(S, omega),
      signs: signs(response),
      top: Math.max(...response.map(Math.abs)),
    };
  }

  /** How many nodes hold a positive, a negative and no value. */
  function signs(f) {
    const small = ROUNDING * Math.max(...f.map(Math.abs));
    const positive = f.filter((value) => value > small).length;
    const negative = f.filter((value) => value < -small).length;
    return { positive, negative, zero: f.length - positive - negative };
  }

  /** E(P_ω^L δ) for every ω of a list. */
  const energyByOmega = (S, node, omegas, steps) =>
    omegas.map((omega) => energy(S, trajectory(S, node, omega, steps)[steps]));

  return Object.freeze({ operator, study, thresholds, filter, energyByOmega });
})();
