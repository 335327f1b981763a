// SPDX-License-Identifier: MIT OR Apache-2.0
// Draws the page's data. Texts from outside (names of VMs) only ever go to fillText() and textContent.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const LANE = 16, GAP = 2, LEFT = 190, AXIS = 22;
  const CAUSES = ["preempted lock holder", "preempted next waiter", "call: preempted in user mode", "call: off CPU in the kernel",
    "call: halted", "contention, all running", "unknown"];
  const CAUSE_COLOURS = ["#d55e00", "#cc79a7", "#0072b2", "#56b4e9", "#009e73", "#e6c300", "#999999"];
  const STATES = ["runs", "waits for a CPU", "halted", "I/O", "stopped"];
  const STATE_COLOURS = ["#b8dcb8", "#444444", "#f4f4f4", "#8fa8d8", "#000000"];
  const OWNERS = { "-1": ["another VM", "#bbbbbb"], "-2": ["a task of the host", "#666666"], "-3": ["nobody seen", "#ffffff"] };
  const vms = data.overview.vms;
  const hue = (vm) => `hsl(${(vm * 137 + 20) % 360} 60% ${45 + 12 * (vm % 3)}%)`;
  const owner = (code) => (code >= 0 ? [vms[code] || `VM ${code}`, hue(code)] : OWNERS[code]);
  const time = (ns) => (ns >= 1e9 ? `${(ns / 1e9).toFixed(3)} s` : ns >= 1e6 ? `${(ns / 1e6).toFixed(3)} ms` : `${(ns / 1e3).toFixed(1)} us`);
  const digit = (text, place) => parseInt(text[place] || "0", 16) / 15;
  const short = (text) => (text.length > 24 ? `${text.slice(0, 23)}…` : text);

  const key = (id, entries) => {
    const line = document.getElementById(id);
    for (const [word, colour] of entries) {
      const span = document.createElement("span"), square = document.createElement("i");
      square.style.background = colour;
      span.append(square, word);
      line.append(span);
    }
  };

  // A canvas of lanes over `length` ns that zooms; `draw(paint, x, view)` fills it, `says(lane, ns)` tells what is under the pointer.
  const lanes = (id, names, length, draw, says, height = LANE, label = time) => {
    const canvas = document.getElementById(id), line = document.getElementById(`${id}-says`);
    if (!names.length || !length) {
      canvas.hidden = true;
      return;
    }
    const view = { from: 0, to: length };
    const row = height + GAP;
    const paintAll = () => {
      const scale = window.devicePixelRatio || 1, width = canvas.clientWidth || 1000, tall = names.length * row + AXIS;
      canvas.style.height = `${tall}px`;
      canvas.width = width * scale;
      canvas.height = tall * scale;
      const paint = canvas.getContext("2d");
      paint.scale(scale, scale);
      paint.clearRect(0, 0, width, tall);
      const x = (ns) => LEFT + (width - LEFT) * (ns - view.from) / (view.to - view.from);
      paint.save();
      paint.beginPath();
      paint.rect(LEFT, 0, width - LEFT, tall);
      paint.clip();
      draw(paint, x, view, (lane) => lane * row, height);
      paint.restore();
      paint.fillStyle = "#222";
      paint.font = "11px sans-serif";
      paint.textAlign = "right";
      names.forEach((name, lane) => paint.fillText(short(name), LEFT - 6, lane * row + Math.min(height, LANE) - 4));
      paint.textAlign = "center";
      for (let tick = 0; tick <= 8; tick++) {
        const ns = view.from + (view.to - view.from) * tick / 8;
        paint.textAlign = tick === 0 ? "left" : tick === 8 ? "right" : "center";
        paint.fillText(label(ns), x(ns), tall - 6);
      }
    };
    const show = (from, to) => {
      const wide = Math.min(length, Math.max(to - from, 1000));
      view.from = Math.min(Math.max(0, from), length - wide);
      view.to = view.from + wide;
      paintAll();
    };
    const zoom = (factor, at) => show(at - (at - view.from) * factor, at + (view.to - at) * factor);
    const under = (event) => {
      const box = canvas.getBoundingClientRect();
      const ns = view.from + (view.to - view.from) * (event.clientX - box.left - LEFT) / (box.width - LEFT);
      return [Math.floor((event.clientY - box.top) / row), Math.min(Math.max(ns, view.from), view.to)];
    };
    const middle = () => (view.from + view.to) / 2;
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      zoom(event.deltaY > 0 ? 1.25 : 0.8, under(event)[1]);
    }, { passive: false });
    let dragged = null;
    canvas.addEventListener("pointerdown", (event) => {
      dragged = [event.clientX, view.from, view.to];
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointerup", () => { dragged = null; });
    canvas.addEventListener("pointermove", (event) => {
      if (dragged) {
        const moved = (event.clientX - dragged[0]) * (view.to - view.from) / (canvas.clientWidth - LEFT);
        show(dragged[1] - moved, dragged[2] - moved);
      }
      const [lane, ns] = under(event);
      line.textContent = lane >= 0 && lane < names.length ? `${names[lane]} at ${label(ns)}: ${says(lane, ns)}` : "";
    });
    canvas.addEventListener("dblclick", () => show(0, length));
    canvas.addEventListener("keydown", (event) => {
      const step = (view.to - view.from) / 4;
      const done = { "+": () => zoom(0.6, middle()), "=": () => zoom(0.6, middle()), "-": () => zoom(1.6, middle()),
        "0": () => show(0, length), ArrowLeft: () => show(view.from - step, view.to - step),
        ArrowRight: () => show(view.from + step, view.to + step) }[event.key];
      if (done) {
        event.preventDefault();
        done();
      }
    });
    window.addEventListener("resize", paintAll);
    paintAll();
  };

  const bar = (paint, x, begin, end, y, height, colour, alpha = 1) => {
    paint.globalAlpha = alpha;
    paint.fillStyle = colour;
    paint.fillRect(x(begin), y, Math.max(x(end) - x(begin), 0.5), height);
    paint.globalAlpha = 1;
  };
  const bins = (view, width, count) => [Math.max(0, Math.floor(view.from / width)), Math.min(count, Math.ceil(view.to / width))];

  const overview = () => {
    const of = data.overview, width = of.width_ns;
    const names = of.cpus.map((lane) => `pCPU ${lane.cpu}`).concat(of.vcpus.map((lane) => `${vms[lane.vm]} vCPU ${lane.vcpu}`));
    const parts = [["preempted", CAUSE_COLOURS[0]], ["spinning", CAUSE_COLOURS[5]], ["useful", STATE_COLOURS[0]], ["waiting", STATE_COLOURS[1]]];
    const share = (lane, part, bin) => (part === "useful"
      ? Math.max(0, digit(lane.running, bin) - digit(lane.preempted, bin) - digit(lane.spinning, bin)) : digit(lane[part], bin));
    lanes("overview", names, of.bins * width, (paint, x, view, y, height) => {
      const [first, last] = bins(view, width, of.bins);
      for (let bin = first; bin < last; bin++) {
        const begin = bin * width, end = begin + width;
        of.cpus.forEach((lane, place) =>
          bar(paint, x, begin, end, y(place), height, owner(lane.owners[bin])[1], 0.25 + 0.75 * digit(lane.shares, bin)));
        of.vcpus.forEach((lane, place) => {
          let top = y(of.cpus.length + place) + height;
          for (const [part, colour] of parts) {
            const tall = share(lane, part, bin) * height;
            top -= tall;
            if (tall > 0) bar(paint, x, begin, end, top, tall, colour);
          }
        });
      }
    }, (place, ns) => {
      const bin = Math.min(of.bins - 1, Math.floor(ns / width)), lane = of.cpus[place];
      const percent = (value) => `${Math.round(100 * value)} %`;
      if (lane) return `${owner(lane.owners[bin])[0]} had it for ${percent(digit(lane.shares, bin))} of ${time(width)}`;
      const vcpu = of.vcpus[place - of.cpus.length];
      return `ran ${percent(digit(vcpu.running, bin))}, of that spun for preempted vCPUs ${percent(digit(vcpu.preempted, bin))} and otherwise ` +
        `${percent(digit(vcpu.spinning, bin))}; waited for a CPU ${percent(digit(vcpu.waiting, bin))}`;
    });
    const owners = new Set(of.cpus.flatMap((lane) => lane.owners));
    key("overview-key", [["spins for preempted vCPUs", parts[0][1]], ["spins otherwise", parts[1][1]], ["runs", parts[2][1]],
      ["waits for a CPU", parts[3][1]], ...[...owners].sort((a, b) => b - a).slice(0, 40).map((code) => owner(code))]);
    const left = of.cpus_left_out + of.vcpus_left_out;
    if (left) document.getElementById("overview-says").textContent = `${of.cpus_left_out} pCPUs and ${of.vcpus_left_out} vCPUs are not shown.`;
  };

  const spin = () => {
    const all = data.overview.spin, tall = 54;
    const length = Math.max(0, ...all.map((lane) => lane.waiting.length * lane.width_ns));
    lanes("spin", all.map((lane) => vms[lane.vm]), length, (paint, x, view, y, height) => all.forEach((lane, place) => {
      const [first, last] = bins(view, lane.width_ns, lane.waiting.length);
      paint.strokeStyle = STATE_COLOURS[1];
      paint.beginPath();
      for (let bin = first; bin < last; bin++) {
        let top = y(place) + height;
        lane.causes.forEach((text, cause) => {
          const part = digit(text, bin) * height;
          top -= part;
          if (part > 0) bar(paint, x, bin * lane.width_ns, (bin + 1) * lane.width_ns, top, part, CAUSE_COLOURS[cause]);
        });
        paint.lineTo(x((bin + 0.5) * lane.width_ns), y(place) + height * (1 - digit(lane.waiting, bin)));
      }
      paint.stroke();
    }), (place, ns) => {
      const lane = all[place], bin = Math.floor(ns / lane.width_ns);
      const said = CAUSES.map((word, cause) => [word, Math.round(100 * digit(lane.causes[cause], bin))]).filter(([, share]) => share > 0);
      return said.map(([word, share]) => `${word} ${share} %`).join(", ") || "no spin time";
    }, tall);
    key("spin-key", CAUSES.map((word, cause) => [word, CAUSE_COLOURS[cause]]));
  };

  const moment = () => {
    const of = data.moment;
    if (!of) {
      document.getElementById("moment").hidden = true;
      document.getElementById("moment-none").hidden = false;
      return;
    }
    const name = ([vm, vcpu]) => `${vms[vm]} vCPU ${vcpu}`;
    const names = of.cpus.map((cpu) => `pCPU ${cpu}`).concat(of.lanes.map(name));
    const colour = (kind) => (kind < 5 ? STATE_COLOURS[kind] : CAUSE_COLOURS[kind - 5]);
    lanes("moment", names, of.length_ns, (paint, x, view, y, height) => {
      for (const [lane, begin, length, kind, cpu] of of.pieces) {
        if (begin > view.to || begin + length < view.from) continue;
        const top = y(of.cpus.length + lane);
        if (kind === 1) bar(paint, x, begin, begin + length, top + height / 2 - 1, 2, colour(kind));
        else bar(paint, x, begin, begin + length, top, height, colour(kind));
        const place = of.cpus.indexOf(cpu);
        if (kind === 0 && place >= 0) bar(paint, x, begin, begin + length, y(place), height, hue(of.lanes[lane][0]));
      }
    }, (place, ns) => {
      const at = of.pieces.filter(([, begin, length]) => begin <= ns && ns < begin + length);
      if (place < of.cpus.length) {
        const there = at.find(([, , , kind, cpu]) => kind === 0 && cpu === of.cpus[place]);
        return there ? name(of.lanes[there[0]]) : "no vCPU that is shown";
      }
      const said = at.filter(([lane]) => lane === place - of.cpus.length).map(([lane, , length, kind, cpu, blamed]) => {
        if (kind >= 5) return `spins (${CAUSES[kind - 5]}${blamed >= 0 ? `: vCPU ${blamed}` : ""}) for ${time(length)}`;
        return `${STATES[kind]}${kind === 0 ? ` on pCPU ${cpu}` : ""} for ${time(length)}`;
      });
      return said.join("; ") || "not known";
    });
    key("moment-key", STATES.map((word, kind) => [word, STATE_COLOURS[kind]]).concat(CAUSES.map((word, cause) => [`spins: ${word}`, CAUSE_COLOURS[cause]])));
    document.getElementById("moment-says").textContent = `From ${time(of.from_ns)} on.`;
  };

  const lengths = () => {
    const kinds = [["waits", "waits for a CPU", "#444444"], ["runs", "runs", "#4d9e4d"], ["sleeps", "sleeps", "#8fa8d8"]];
    const { first, vms: all } = data.lengths, powers = all.length ? all[0].waits.length : 0;
    lanes("lengths", all.map((of) => vms[of.vm]), powers, (paint, x, view, y, height) => all.forEach((of, place) =>
      kinds.forEach(([kind, , colour], third) => {
        const most = Math.max(1, ...of[kind]);
        of[kind].forEach((count, power) => {
          const tall = count ? Math.max(1, height * count / most) : 0;
          bar(paint, x, power + third / 4, power + (third + 1) / 4, y(place) + height - tall, tall, colour);
        });
      })), (place, power) => {
      const floor = Math.min(powers - 1, Math.floor(power));
      return `${time(2 ** (first + floor))} to ${time(2 ** (first + floor + 1))}: ` + kinds.map(([kind, word]) => `${all[place][kind][floor]} ${word}`).join(", ");
    }, 40, (power) => time(2 ** (first + Math.floor(power))));
    key("lengths-key", kinds.map(([, word, colour]) => [word, colour]));
  };

  const begin = document.getElementById("begin");
  if (begin.dataset.unixMs) begin.textContent = ` from ${new Date(Number(begin.dataset.unixMs)).toISOString()} on`;
  overview();
  spin();
  moment();
  lengths();
})();
