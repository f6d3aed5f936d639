/**
 * All eigenvalues of a symmetric matrix, in two steps: Householder reflections make it tridiagonal, then each eigenvalue
 * is found by bisection. Bisection needs no start, cannot fail to converge and is exact to the last digits.
 */
const spectrum = (() => {
  /** Reduce a symmetric matrix (rows, which are used up) to Q A Qᵀ = tridiagonal: its diagonal and what stands beside it. */
  function tridiagonal(a) {
    const n = a.length;
    const beside = new Float64Array(Math.max(0, n - 1));
    for (let k = 0; k + 2 < n; k++) {
      let square = 0;
      for (let i = k + 1; i < n; i++) square += a[i][k] ** 2;
      // The reflection I − 2 v vᵀ / vᵀv takes column k below the diagonal to (alpha, 0, …, 0); the sign avoids cancellation.
      const alpha = a[k + 1][k] > 0 ? -Math.sqrt(square) : Math.sqrt(square);
      beside[k] = alpha;
      if (square === 0) continue;
      const v = new Float64Array(n);
      for (let i = k + 1; i < n; i++) v[i] = a[i][k];
      v[k + 1] -= alpha;
      reflect(a, v, k + 1);
    }
    if (n > 1) beside[n - 2] = a[n - 1][n - 2];
    return { diagonal: Float64Array.from(a, (row, i) => row[i]), beside };
  }

  /** A ← H A H with H = I − 2 v vᵀ / vᵀv on rows and columns from `start`: with p = 2 A v / vᵀv, A − v qᵀ − q vᵀ. */
  function reflect(a, v, start) {
    const n = a.length;
    let vv = 0;
    for (let i = start; i < n; i++) vv += v[i] * v[i];
    const q = new Float64Array(n);
    let vp = 0;
    for (let i = start; i < n; i++) {
      for (let j = start; j < n; j++) q[i] += a[i][j] * v[j];
      q[i] *= 2 / vv;
      vp += v[i] * q[i];
    }
    for (let i = start; i < n; i++) q[i] -= (vp / vv) * v[i];
    for (let i = start; i < n; i++) for (let j = start; j < n; j++) a[i][j] -= v[i] * q[j] + q[i] * v[j];
  }

  /** How many eigenvalues lie below x: the negative pivots of T − x I (Sylvester's law of inertia). */
  function countBelow({ diagonal, beside }, x) {
    let count = 0;
    let pivot = 1;
    for (let i = 0; i < diagonal.length; i++) {
      pivot = diagonal[i] - x - (i ? beside[i - 1] ** 2 / pivot : 0);
      if (pivot === 0) pivot = 1e-300;
      if (pivot < 0) count += 1;
    }
    return count;
  }

  /** All eigenvalues of a symmetric matrix in rising order; they must lie in [low, high]. */
  function eigenvalues(matrix, low, high) {
    const t = tridiagonal(matrix.map((row) => Float64Array.from(row)));
    return matrix.map((_, k) => {
      let [from, to] = [low, high];
      for (let round = 0; round < 60; round++) {
        const middle = (from + to) / 2;
        if (countBelow(t, middle) > k) to = middle;
        else from = middle;
      }
      return (from + to) / 2;
    });
  }

  return Object.freeze({ eigenvalues });
})();
