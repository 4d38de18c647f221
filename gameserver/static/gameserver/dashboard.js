// The charts on the admin's first page, from the figures at the section's data-url.
"use strict";
(() => {
  const PAUSE_MS = 10000;
  const MINUTES = 30;
  const HEIGHT = 150;
  const COLOURS = ["#2f7ed8", "#d8732f", "#4c9f50", "#a04cc4", "#c4a34c", "#4cb5c4"];
  const section = document.getElementById("dashboard");
  const state = document.getElementById("dashboard-state");
  const charts = new Map();

  const element = (name, text) => {
    const made = document.createElement(name);
    made.textContent = text;
    return made;
  };

  function draw(id, minutes, lines) {
    const box = document.getElementById(id);
    const labels = lines.map((line) => line.label).join();
    const known = charts.get(id);
    const data = [minutes, ...lines.map((line) => line.values)];
    if (known && known.labels === labels) {
      known.chart.setData(data);
      return;
    }
    if (known) known.chart.destroy();
    const colour = getComputedStyle(section).color;
    const axis = { stroke: colour, grid: { stroke: `${COLOURS[0]}22`, width: 1 } };
    const chart = new uPlot(
      {
        width: box.clientWidth,
        height: HEIGHT,
        cursor: { y: false },
        scales: { y: { range: (self, low, high) => [0, Math.max(1, high * 1.1)] } },
        axes: [axis, { ...axis, size: 58 }],
        series: [
          { value: "{HH}:{mm}" },
          ...lines.map((line, number) => ({
            label: line.label,
            stroke: COLOURS[number % COLOURS.length],
            fill: lines.length === 1 ? `${COLOURS[number]}22` : undefined,
            width: 2,
            points: { show: true, size: 4 },
          })),
        ],
      },
      data,
      box,
    );
    charts.set(id, { chart, labels });
  }

  function show(figures) {
    const now = Math.floor(Date.now() / 60000);
    const minutes = Array.from({ length: MINUTES }, (_, age) => now - MINUTES + 1 + age);
    const column = (name) => figures.fields.indexOf(name);
    const of = (process, name) => {
      const found = new Map(process.minutes.map((one) => [one[0], one[column(name)]]));
      return minutes.map((minute) => found.get(minute) ?? null);
    };
    const sum = (name) => {
      const each = figures.processes.map((process) => of(process, name));
      return minutes.map((_, at) => {
        const known = each.map((values) => values[at]).filter((value) => value !== null);
        return known.length ? known.reduce((total, value) => total + value, 0) : null;
      });
    };
    const seconds = minutes.map((minute) => minute * 60);
    draw("chart-online", seconds, figures.processes.map((process) => ({ label: process.name, values: of(process, "online") })));
    draw("chart-events", seconds, [
      { label: "joins", values: sum("joins") },
      { label: "eliminations", values: sum("eliminations") },
    ]);
    draw("chart-capacity", seconds, [
      { label: "read units", values: sum("read_units") },
      { label: "write units", values: sum("write_units") },
    ]);
    draw("chart-errors", seconds, [{ label: "errors", values: sum("errors") }]);

    const facts = [
      ["Processes", figures.processes.length],
      ["Settings revision", figures.revision],
      ...Object.entries(figures.totals).map(([name, total]) => [name.replaceAll("_", " "), total]),
    ].map(([label, value]) => {
      const pair = document.createElement("div");
      pair.append(element("dt", label), element("dd", value));
      return pair;
    });
    document.getElementById("dashboard-totals").replaceChildren(...facts);

    const rows = Object.entries(figures.maps).map(([map, title]) => {
      const row = document.createElement("tr");
      row.append(element("td", title), element("td", figures.games.OPEN[map]), element("td", figures.games.STARTED[map]));
      return row;
    });
    document.querySelector("#dashboard-games tbody").replaceChildren(...rows);
    state.textContent = `As of ${new Date().toLocaleTimeString()}.`;
  }

  async function look() {
    if (document.hidden) return;
    try {
      const response = await fetch(section.dataset.url, { credentials: "same-origin", redirect: "error" });
      const figures = await response.json();
      if (!response.ok) throw new Error(figures.error);
      show(figures);
    } catch (error) {
      state.textContent = `The figures cannot be read: ${error.message}`;
    }
  }

  addEventListener("resize", () => {
    for (const [id, { chart }] of charts) {
      chart.setSize({ width: document.getElementById(id).clientWidth, height: HEIGHT });
    }
  });
  look();
  setInterval(look, PAUSE_MS);
})();
