// Draws the charts of the page with uPlot, from the JSON that the page carries.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("charts").textContent);
  const dashes = [[], [7, 4], [2, 3]];
  const shown = new Map(data.contenders.map((one) => [one.kind + " " + one.name, one]));
  const drawings = [];

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colour = (one) => css("--c" + (one.colour % 8));
  const dash = (one) => dashes[Math.floor(one.colour / 8) % dashes.length];

  // Powers of ten between two figures; with 2 and 5 times as much where there are few.
  function steps(low, high) {
    if (!(low > 0)) return [];
    const factors = high / low < 200 ? [1, 2, 5] : [1];
    const steps = [];
    for (let power = 10 ** Math.floor(Math.log10(low)); power <= high; power *= 10) {
      steps.push(...factors.map((factor) => factor * power).filter((step) => step >= low && step <= high));
    }
    return steps;
  }

  function element(parent, tag, className, text) {
    const made = document.createElement(tag);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
  }

  // Nanoseconds in the unit that suits.
  function time(ns) {
    const units = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]];
    const [size, unit] = units.find(([size]) => ns >= size) ?? [1, "ns"];
    return `${Number((ns / size).toPrecision(3))} ${unit}`;
  }

  // The order of drawing: lines in colour are drawn last, ours on top of them.
  const depth = (one) => (one?.chosen ? 1 : 0) + (one?.ours ? 2 : 0);

  function lineStyle(one) {
    const chosen = one?.chosen;
    return {
      stroke: chosen ? colour(one) : css("--ghost"),
      width: !chosen ? 1 : one.ours ? 3.5 : 1.75,
      dash: chosen ? dash(one) : [],
      spanGaps: false,
    };
  }

  // The pixel on the canvas at which a line's figure lies, or null.
  function place(chart, line, index) {
    const y = chart.data[line][index];
    if (y == null) return null;
    const scale = chart.series[line].scale;
    return [chart.valToPos(chart.data[0][index], "x", true), chart.valToPos(y, scale, true)];
  }

  // The span of the rounds at each point, and the points: hollow where the rounds lie far apart.
  function drawPoints(chart, line, curve, one) {
    const { ctx } = chart, ratio = devicePixelRatio;
    ctx.save();
    ctx.strokeStyle = colour(one);
    ctx.lineWidth = ratio;
    for (let index = 0; index < curve.ns.length; index++) {
      const at = place(chart, line, index);
      if (!at) continue;
      if (curve.low[index] > 0 && curve.high[index] > curve.low[index]) {
        const scale = chart.series[line].scale;
        const [top, bottom] = [curve.high[index], curve.low[index]].map((ns) => chart.valToPos(ns, scale, true));
        ctx.beginPath();
        ctx.moveTo(at[0], top);
        ctx.lineTo(at[0], bottom);
        ctx.stroke();
      }
      ctx.beginPath();
      ctx.arc(at[0], at[1], (one.ours ? 4 : 3) * ratio, 0, 2 * Math.PI);
      ctx.fillStyle = curve.noisy[index] ? css("--paper") : colour(one);
      ctx.fill();
      ctx.stroke();
    }
    ctx.restore();
  }

  // Names at the right ends of the lines in colour, moved apart where they would lie on each other.
  function drawNames(chart, curves) {
    const { ctx, bbox } = chart, ratio = devicePixelRatio, height = 13 * ratio;
    const names = [];
    curves.forEach(({ one, name, values }, index) => {
      if (!one?.chosen) return;
      const last = values.findLastIndex((value) => value != null);
      const at = last < 0 ? null : place(chart, index + 1, last);
      if (at) names.push({ one, name, from: at, y: at[1] });
    });
    names.sort((a, b) => a.y - b.y);
    names.forEach((name, index) => {
      if (index > 0) name.y = Math.max(name.y, names[index - 1].y + height);
    });
    let lowest = bbox.top + bbox.height;
    for (const name of names.toReversed()) {
      name.y = Math.min(name.y, lowest);
      lowest = name.y - height;
    }
    ctx.save();
    ctx.textBaseline = "middle";
    ctx.textAlign = "left";
    const x = bbox.left + bbox.width + 8 * ratio;
    for (const { one, name, from, y } of names) {
      ctx.font = `${one.ours ? "bold " : ""}${12 * ratio}px system-ui, sans-serif`;
      ctx.strokeStyle = ctx.fillStyle = colour(one);
      ctx.lineWidth = ratio / 2;
      ctx.beginPath();
      ctx.moveTo(from[0] + 5 * ratio, from[1]);
      ctx.lineTo(x - 2 * ratio, y);
      ctx.stroke();
      ctx.fillText(name, x, y);
    }
    ctx.restore();
  }

  // The line nearest to the pointer, at the place under the pointer.
  function nearest(chart, curves) {
    const { idx: index, top } = chart.cursor;
    if (index == null || top < 0) return null;
    let best = null;
    curves.forEach((curve, line) => {
      const y = chart.data[line + 1][index];
      if (y == null) return;
      const away = Math.abs(chart.valToPos(y, chart.series[line + 1].scale) - top);
      if (!best || away < best.away) best = { away, curve, index };
    });
    return best;
  }

  function axis(more) {
    return { stroke: css("--soft"), grid: { stroke: css("--grid"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif", ...more };
  }

  // A factor.
  const factor = (times) => `${Number(times.toPrecision(3))} x`;

  // The label at a split of an axis; where there is little room for labels, some are left out.
  const label = (say) => (figure) => (figure == null ? "" : say(figure));

  // A chart. `curves` have a contender, a name and values; `options` say what differs between the kinds of charts.
  function draw(figure, curves, options) {
    const hint = figure.querySelector(".hint");
    const box = figure.querySelector(".canvas");
    box.replaceChildren();
    curves.sort((a, b) => depth(a.one) - depth(b.one));
    const width = Math.max(280, box.clientWidth);
    const names = curves.filter(({ one }) => one?.chosen).map(({ name }) => name.length);
    const chart = new uPlot({
      width,
      height: 270,
      padding: [10, 14 + 6.6 * Math.max(4, ...names), 0, 0],
      legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
      scales: { x: { time: false, range: options.range }, y: options.scale },
      axes: [axis(options.x), axis(options.y)],
      series: [{}, ...curves.map(({ one }) => ({ ...lineStyle(one), points: { show: false } }))],
      hooks: {
        draw: [(chart) => {
          curves.forEach(({ one, curve }, index) => {
            if (curve && one?.chosen) drawPoints(chart, index + 1, curve, one);
          });
          drawNames(chart, curves);
        }],
        setCursor: [(chart) => {
          const found = nearest(chart, curves);
          hint.textContent = found ? options.say(found.curve, found.index) : "";
        }],
      },
    }, [options.places, ...curves.map(({ values }) => values)], box);
    return chart;
  }

  function drawTimes(figure, kind, chart) {
    const last = chart.places.length - 1;
    const text = chart.factors ? factor : time;
    const curves = chart.lines.map((curve) => ({
      one: shown.get(kind + " " + curve.name), name: curve.name, values: curve.ns.map((ns) => (ns > 0 ? ns : null)), curve,
    }));
    return draw(figure, curves, {
      places: chart.places.map((_, index) => index),
      range: () => [-0.15, Math.max(last, 0) + 0.15],
      scale: { distr: 3, range: (_, low, high) => (low > 0 ? [low / 1.3, high * 1.3] : [1, 10]) },
      x: { splits: () => chart.places.map((_, index) => index), values: (_, at) => at.map((index) => chart.places[index]), size: 28, gap: 3 },
      y: { splits: (_, __, low, high) => steps(low, high), values: (_, at) => at.map(label(text)), size: 56, gap: 3 },
      say: ({ name, curve }, index) => {
        const span = curve.low[index] == null ? "" : ` (${text(curve.low[index])} to ${text(curve.high[index])})`;
        const at = [chart.places[index], chart.unit].filter(Boolean).join(" ");
        return `${name}, ${at}: ${text(curve.ns[index])}${span}${curve.noisy[index] ? ", noisy" : ""}`;
      },
    });
  }

  function drawFragmentation(figure) {
    const { at, in_use: inUse, lines } = data.fragmentation;
    const curves = lines.map(({ name, percent }) => ({ one: shown.get("backend " + name) ?? byDefault(name), name, values: percent }));
    curves.push({ one: null, name: "in use, of the arena", values: inUse });
    return draw(figure, curves, {
      places: at,
      scale: { range: () => [0, 100] },
      x: { values: (_, counts) => counts.map((count) => `${count / 1000}k`), size: 28, gap: 3 },
      y: { values: (_, percents) => percents.map((percent) => `${percent} %`), size: 56, gap: 3 },
      say: ({ name, values }, index) => `${name}, after ${at[index]} operations: ${values[index]} %`,
    });
  }

  // A contender of which the record has no row.
  function byDefault(name) {
    return { name, colour: data.fragmentation.lines.findIndex((line) => line.name === name), chosen: true, ours: name === "nbbs" };
  }

  function figure(parent, title) {
    const made = element(parent, "figure", "chart");
    element(made, "figcaption", "", title);
    element(made, "div", "canvas");
    element(made, "output", "hint");
    return made;
  }

  // One workload: buttons for its parts, a sentence, and charts side by side.
  function section(root, { kind, tabs }) {
    const bar = element(root, "div", "tabs");
    const verdict = element(root, "p", "verdict");
    const charts = element(root, "div", "charts");
    let open = 0;
    const redraw = () => {
      const tab = tabs[open];
      verdict.textContent = tab.verdict;
      charts.replaceChildren();
      for (const chart of tab.charts) drawTimes(figure(charts, chart.title), kind, chart);
    };
    if (tabs.length > 1) {
      tabs.forEach((tab, index) => {
        const button = element(bar, "button", "", tab.label);
        button.type = "button";
        button.addEventListener("click", () => { open = index; mark(); redraw(); });
      });
    }
    const mark = () => [...bar.children].forEach((button, index) => button.setAttribute("aria-pressed", index === open));
    mark();
    return redraw;
  }

  function redrawAll() {
    for (const box of document.querySelectorAll("#picker input")) {
      const one = shown.get(box.dataset.kind + " " + box.value);
      one.chosen = box.checked;
      const swatch = box.parentElement.querySelector(".swatch");
      swatch.style.borderTopColor = one.chosen ? colour(one) : "";
      swatch.style.borderTopStyle = ["solid", "dashed", "dotted"][Math.floor(one.colour / 8) % 3];
    }
    for (const redraw of drawings) redraw();
  }

  document.documentElement.classList.add("scripted");
  for (const drawn of data.sections) {
    const root = [...document.querySelectorAll(".drawing[data-workload]")]
      .find(({ dataset }) => dataset.workload === drawn.workload && dataset.kind === drawn.kind);
    drawings.push(section(root, drawn));
  }
  if (data.fragmentation) {
    const root = document.getElementById("fragmentation-chart");
    const made = figure(root, "percent of the free memory outside whole frames, over the operations; in thin grey, percent of the arena in use");
    drawings.push(() => drawFragmentation(made));
  }
  for (const button of document.querySelectorAll(".show-more")) {
    button.hidden = false;
    button.addEventListener("click", () => { button.previousElementSibling.classList.add("opened"); button.remove(); });
  }
  document.getElementById("picker").addEventListener("change", redrawAll);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== width) { width = innerWidth; redrawAll(); }
  });
  redrawAll();
})();
