/** What the page says: the sentence about ω, what became of the energy, the words for a screen reader. */
const words = (() => {
  const { say, percent } = colour;

  /** What became of the energy of the impulse, from the energies themselves. */
  function energyChange(study) {
    const [first, last] = [study.energies[0], study.energies.at(-1)];
    if (first === 0) return "an impulse on a node without neighbours has no energy";
    const ratio = last / first;
    if (Math.abs(ratio - 1) < 1e-9) return "the energy is unchanged";
    if (ratio > 1) return `the energy has grown ${say(ratio)}-fold`;
    return `${percent(ratio)} of the energy is left`;
  }

  function steps(count) {
    return count === 1 ? "1 step" : `${count} steps`;
  }

  /** One paragraph that explains the state. */
  function caption(state, study, gcn, S) {
    const { graph, node, omega, steps: count } = state;
    if (!graph.edges.length) return "Without edges S is the identity: nothing moves, whatever ω is. Join two nodes to see it work.";
    if (!S.degree[node]) {
      return `Node ${graphs.nameOf(graph, node)} has no neighbours, so its impulse stays where it is. Choose a node that has some.`;
    }
    if (omega === 0) return "At ω = 0 every step is the identity: nothing moves, however deep the network is.";
    if (count === 0) return "No step yet: this is the impulse itself. Move L and watch it travel.";
    return `${meaning(omega, study.kind, S)} ${outcome(state, study, gcn)}`;
  }

  /** What this ω means on this graph. */
  function meaning(omega, kind, S) {
    const { signs, critical } = propagation.thresholds(S);
    if (omega < 0) return "Below 0 a step leads away from the neighbours instead of towards them: it sharpens, and differences grow.";
    if (omega < 1) return `A step goes ${percent(omega)} of the way that a GCN goes, so the response remembers longer where it began.`;
    if (omega === 1) return "This is a GCN: a node takes a weighted average of its neighbourhood, and with depth the response has one smooth shape wherever it began.";
    if (kind === "smoothing") return `Over-relaxed: a step overshoots the average of the neighbours, but up to ${say(signs)} no weight is negative.`;
    if (kind === "mixed-sign") {
      return `Beyond ${say(signs)} some weights are negative: a node may turn against its neighbours. Up to ω₀ = ${say(critical)} it still smooths in the long run.`;
    }
    const growth = Math.abs(1 - omega * S.eigenvalues.at(-1));
    return `Beyond ω₀ = ${say(critical)} the roughest pattern of the graph grows: ${say(growth)}-fold with every step, here.`;
  }

  /** What came of it: the node of the impulse, signs, energy. */
  function outcome({ graph, node, omega, steps: count }, study, gcn) {
    const name = `node ${graphs.nameOf(graph, node)}`;
    const after = `After ${steps(count)},`;
    const held = (each) => say(Math.abs(each.response[node]) < 1e-12 * each.top ? 0 : each.response[node]);
    const { negative } = study.signs;
    if (negative) return `${after} ${negative} of ${graph.n} nodes ${negative === 1 ? "is" : "are"} negative, and ${energyChange(study)}.`;
    if (omega === 1) return `${after} ${name} holds ${held(study)}, and ${energyChange(study)}.`;
    return `${after} ${name} holds ${held(study)} (GCN: ${held(gcn)}) and ${energyChange(study)} (GCN: ${keptBy(gcn)}).`;
  }

  const keptBy = ({ energies }) => percent(energies.at(-1) / energies[0]);

  /** What the entries of P_ω and the energies are, for the line below the caption. */
  function evidence(study) {
    const { negative, smallest } = study.entries;
    const entries = negative
      ? `${negative} negative ${negative === 1 ? "entry" : "entries"}, the smallest ${say(smallest)}`
      : "no negative entry";
    return `The operator has ${entries}. The energy went from ${say(study.energies[0])} to ${say(study.energies.at(-1))}.`;
  }

  /** The line below a drawing. */
  function signs({ signs: { positive, negative, zero }, top }) {
    const parts = [`${positive} positive`, `${negative} negative`];
    if (zero) parts.push(`${zero} still 0`);
    return `Nodes: ${parts.join(", ")}. Largest value ${say(top)}.`;
  }

  /** How a node is called by a screen reader. */
  function nodeLabel(graph, S, node, value) {
    return `Node ${graphs.nameOf(graph, node)}, ${S.degree[node]} ${S.degree[node] === 1 ? "neighbour" : "neighbours"}, value ${say(value)}`;
  }

  /** What is announced after a change. */
  function announcement({ omega, steps: count, node, graph }, study) {
    return `ω ${say(omega)}, ${steps(count)}, node ${graphs.nameOf(graph, node)}: ${study.kind}, ${energyChange(study)}.`;
  }

  return Object.freeze({ caption, evidence, signs, nodeLabel, announcement, energyChange });
})();
