// Draws what the server says. It decides, evaluates and colours nothing by itself: every verdict, value, cost and picture is in the
// server's answers, and all text of others goes into the page as text.
'use strict';

/** Quiet time after a key before a question is sent, in milliseconds. */
const PAUSE = 200;
/** Quiet time before pictures are asked for, which take longer. */
const PICTURE_PAUSE = 800;
/** Time between two looks at a server that has no place for one more who listens, in milliseconds. */
const LOOK = 2000;
/** The choice that is no mode: what happens in the server that the page is of. */
const LIVE = 'live';
/** Bytes of a link's text when it is unpacked: as many as a question may have. */
const MAX_LINK = 1 << 20;

const byId = id => document.getElementById(id);
const state = { modes: [], mode: null, asked: 0, shown: 0, timer: 0, pictureTimer: 0, live: false, looking: 0, source: null };

/** An element with attributes and children; texts become text nodes. */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.filter(child => child !== null && child !== undefined));
  return made;
}

function trouble(text, place = 'trouble') {
  byId(place).textContent = text;
  byId(place).hidden = text === '';
}

// ---- panes

function texts() {
  const fields = {};
  for (const area of document.querySelectorAll('#panes textarea')) {
    if (area.value !== '') fields[area.name] = area.value;
  }
  return fields;
}

function drawPanes(fields) {
  byId('panes').replaceChildren(...state.mode.panes.map(pane => {
    const area = element('textarea', {
      id: `pane-${pane.name}`, name: pane.name, wrap: 'off', spellcheck: 'false', autocomplete: 'off',
      autocapitalize: 'off', 'aria-describedby': `hint-${pane.name} mistakes-${pane.name}`,
    });
    area.value = fields[pane.name] ?? '';
    if (area.value === '') area.className = 'empty';
    const gutter = element('pre', { class: 'gutter', 'aria-hidden': 'true' });
    area.addEventListener('scroll', () => { gutter.scrollTop = area.scrollTop; });
    area.addEventListener('input', () => { number(area, new Map()); typed(); });
    const section = element('div', { class: 'pane' },
      element('label', { for: area.id }, pane.title),
      element('p', { class: 'hint', id: `hint-${pane.name}` }, pane.hint),
      element('div', { class: 'editor' }, gutter, area),
      element('ul', { class: 'mistakes', id: `mistakes-${pane.name}` }));
    number(area, new Map());
    return section;
  }));
}

/** Numbers the lines beside an area, those with mistakes marked. */
function number(area, wrong) {
  const gutter = area.previousElementSibling;
  const lines = area.value.split('\n').length;
  const numbers = [];
  for (let line = 1; line <= lines; line += 1) {
    const message = wrong.get(line);
    numbers.push(message === undefined ? `${line}` : element('span', { class: 'wrong', title: message }, `${line}`), '\n');
  }
  gutter.replaceChildren(...numbers);
  gutter.scrollTop = area.scrollTop;
}

/** Puts the cursor where something stands. */
function goTo(place) {
  const area = byId(`pane-${place.field}`);
  if (!area) return;
  const before = area.value.split('\n').slice(0, place.line - 1);
  const start = before.reduce((sum, line) => sum + line.length + 1, 0);
  const text = area.value.split('\n')[place.line - 1] ?? '';
  area.focus();
  area.setSelectionRange(start + Math.min(place.column - 1, text.length), start + text.length);
  const height = area.scrollHeight / area.value.split('\n').length;
  area.scrollTop = Math.max(0, (place.line - 3) * height);
}

function placeButton(place, text) {
  const button = element('button', { type: 'button', class: 'place' }, text);
  button.addEventListener('click', () => goTo(place));
  return button;
}

const placed = place => `${place.field} ${place.line}:${place.column}`;

function drawMistakes(mistakes) {
  for (const area of document.querySelectorAll('#panes textarea')) {
    const own = mistakes.filter(mistake => mistake.field === area.name);
    area.setAttribute('aria-invalid', own.length > 0 ? 'true' : 'false');
    number(area, new Map(own.map(mistake => [mistake.line, mistake.message])));
    byId(`mistakes-${area.name}`).replaceChildren(...own.map(mistake => {
      const path = mistake.path && !mistake.message.startsWith(mistake.path) ? `${mistake.path}: ` : '';
      const button = element('button', { type: 'button' }, `line ${mistake.line}:${mistake.column}: ${path}${mistake.message}`);
      button.addEventListener('click', () => goTo(mistake));
      return element('li', {}, button);
    }));
  }
}

// ---- questions

/** After a pause in typing: the newest texts are asked about. */
function typed() {
  byId('copied').textContent = '';
  byId('result').setAttribute('aria-busy', 'true');
  clearTimeout(state.timer);
  state.timer = setTimeout(ask, PAUSE);
}

async function question(path, mode, fields) {
  const response = await fetch(path, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ mode, fields }),
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error ?? `the server answered ${response.status}`);
  return answer;
}

/** Asks, and shows the answer unless that to a newer question is shown already. */
async function ask() {
  state.asked += 1;
  const [number, mode, fields] = [state.asked, state.mode, texts()];
  clearTimeout(state.pictureTimer);
  let answer = null;
  let failure = '';
  try {
    answer = await question('evaluate', mode.name, fields);
  } catch (error) {
    failure = `${error.message}`;
  }
  if (number < state.shown || mode !== state.mode || state.live) return;
  state.shown = number;
  trouble(failure);
  if (number === state.asked) byId('result').setAttribute('aria-busy', 'false');
  byId('result').dataset.answer = `${number}`;
  if (answer === null) return;
  drawAnswer(answer);
  if (mode.drawn && !answer.mistakes) {
    state.pictureTimer = setTimeout(() => askPictures(number, mode, fields), PICTURE_PAUSE);
  }
}

async function askPictures(number, mode, fields) {
  byId('pictures').setAttribute('aria-busy', 'true');
  let pictures = [];
  try {
    pictures = await question('pictures', mode.name, fields);
  } catch (error) {
    trouble(`${error.message}`);
  }
  if (number < state.shown || mode !== state.mode) return;
  byId('pictures').replaceChildren(...pictures.map(drawPicture));
  byId('pictures').setAttribute('aria-busy', 'false');
}

// ---- answers

function drawAnswer(answer) {
  const verdict = byId('verdict');
  verdict.dataset.outcome = answer.verdict.outcome;
  if (verdict.textContent !== answer.verdict.text) verdict.textContent = answer.verdict.text;
  drawMistakes([...(answer.mistakes ?? []), ...(answer.messages ?? [])].filter(mistake => mistake.field));
  const opened = new Map([...document.querySelectorAll('#details details, #more details')].map(one => [one.dataset.key, one.open]));
  const parts = [
    listed('Messages', [...(answer.mistakes ?? []), ...(answer.messages ?? [])], message),
    listed('Warnings', answer.warnings, text => element('li', {}, text)),
    listed('Audit annotations', Object.entries(answer.auditAnnotations ?? {}), ([key, value]) => element('li', {}, `${key}: ${value}`)),
    answer.value ? valueOf(answer.value) : null,
    answer.changed ? change(answer.changed) : null,
    listed('Rules', answer.rules, rule),
  ];
  const more = [
    listed('Costs of all expressions together', answer.budgets, budget),
    expressions(answer),
    listed('Beside', answer.notes, text => element('li', {}, text)),
    answer.status ? folded('status', 'Status that a client gets', element('pre', {}, JSON.stringify(answer.status, null, 2))) : null,
  ];
  byId('details').replaceChildren(...parts.filter(part => part !== null));
  byId('more').replaceChildren(...more.filter(part => part !== null));
  for (const one of document.querySelectorAll('#details details, #more details')) {
    one.open = opened.get(one.dataset.key) ?? one.open;
  }
}

function listed(title, items, draw) {
  if (!items || items.length === 0) return null;
  return element('section', {}, element('h3', {}, title), element('ul', {}, ...items.map(draw)));
}

function folded(key, title, ...content) {
  return element('details', { 'data-key': key }, element('summary', {}, title), ...content);
}

function message(one) {
  const path = one.path && !one.message.startsWith(one.path) ? `${one.path}: ` : '';
  const item = element('li', {}, `${path}${one.message} `);
  if (one.field) item.append(placeButton(one, placed(one)));
  return item;
}

function valueOf(value) {
  const shown = value.error ? value.error.message : JSON.stringify(value.value, null, 2);
  return element('section', {}, element('h3', {}, 'Value'),
    element('pre', { id: 'value' }, value.error || value.value !== null || value.text === undefined ? shown : value.text),
    value.error ? null : element('p', {}, `type ${value.type}, cost ${value.cost}`));
}

function change(changed) {
  const lines = changed.difference.map(line => {
    const kind = line.startsWith('+') ? 'plus' : line.startsWith('-') ? 'minus' : 'same';
    return element('span', { class: kind }, `${line}\n`);
  });
  return element('section', {}, element('h3', {}, 'What policies change'), element('pre', { id: 'difference' }, ...lines),
    folded('object', 'The object afterwards', element('pre', {}, changed.object)));
}

function rule(one) {
  const whose = [one.policy, one.binding ? `binding ${one.binding}` : '', one.params ? `params ${one.params}` : ''];
  const item = element('li', {}, element('span', { class: `said-${one.verdict}` }, one.verdict),
    ` ${whose.filter(text => text).join(', ')} `);
  if (one.place) item.append(placeButton(one.place, one.path ?? placed(one.place)));
  else if (one.path) item.append(element('code', {}, one.path));
  if (one.message) item.append(`: ${one.message}`);
  if (one.enforced && one.enforced.length > 0) item.append(` (${one.enforced.join(', ')})`);
  return item;
}

function expressions(answer) {
  const all = answer.expressions ?? [];
  if (all.length === 0) return null;
  return element('section', { id: 'expressions' }, element('h3', {}, 'Expressions'),
    element('p', { id: 'coverage' }, `Reached by this example: ${answer.coverage}`),
    ...all.map((one, index) => expression(one, index, all.length)));
}

function expression(one, index, count) {
  const parts = one.parts.map(part => part.missed.length === 0 ? part.text
    : element('mark', { title: part.missed.join(', ') }, part.text));
  const title = [one.of, one.path].filter(text => text).join(': ') || 'the expression';
  const content = [
    element('pre', {}, ...parts),
    cost(one),
    one.place ? element('p', {}, placeButton(one.place, placed(one.place))) : null,
    ...one.traces.map(trace),
    listed('Not reached', one.missed, text => element('li', {}, text)),
  ];
  const made = folded(`${one.of} ${one.path}`, `${title} – ${one.evaluations === 0 ? 'not evaluated' : `cost ${one.cost}`}`, ...content);
  // The first few are what was evaluated.
  made.open = one.evaluations > 0 && (index < 3 || count < 6);
  return made;
}

function budget(one) {
  const exceeded = one.exceeded ? ': more was asked for, and what came after was not evaluated' : '';
  return element('li', { class: 'cost' }, bar(one), `${one.of}: cost ${one.cost} of ${one.limit} (logarithmic)${exceeded}`);
}

function cost(one) {
  return element('p', { class: 'cost' }, bar(one), `cost ${one.cost} of ${one.limit} (logarithmic), evaluations ${one.evaluations}`);
}

function bar(one) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('viewBox', '0 0 100 8');
  svg.setAttribute('preserveAspectRatio', 'none');
  svg.setAttribute('role', 'img');
  svg.setAttribute('aria-label', `cost ${one.cost} of at most ${one.limit}`);
  for (const [kind, width] of [['part', one.percent], ['whole', 100]]) {
    const bar = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
    bar.setAttribute('class', kind);
    bar.setAttribute('width', `${width}`);
    bar.setAttribute('height', '8');
    svg.append(bar);
  }
  return svg;
}

function trace(one) {
  const at = one.at ? `at ${one.at === '<nil>' ? 'the object' : one.at}, ` : '';
  const section = element('div', {}, element('p', { class: 'hint' }, `${at}cost ${one.cost}`), tree(one.tree, 'tree'));
  if (one.omitted > 0) section.append(element('p', {}, `… and ${one.omitted} more values`));
  return section;
}

function tree(parts, kind) {
  return element('ul', kind ? { class: kind } : {}, ...parts.map(part => {
    const round = part.round === null || part.round === undefined ? '' : `#${part.round} `;
    const failed = part.error !== null && part.error !== undefined;
    const shown = failed ? `error: ${part.error}` : `${part.value}`;
    const known = failed ? 'failed' : shown === 'true' || shown === 'false' ? shown : 'value';
    const item = element('li', {}, `${round}${part.expression} = `, element('span', { class: known }, shown));
    if (part.parts.length > 0) item.append(tree(part.parts));
    return item;
  }));
}

/** As a picture of its own, so that nothing in it is part of the page. */
function drawPicture(picture) {
  const image = element('img', { alt: `States of ${picture.title}: the text below says the same` });
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(picture.svg)}`;
  return element('figure', {}, element('figcaption', {}, picture.title), image,
    folded(`states ${picture.title}`, 'In words', element('pre', {}, picture.text)));
}

// ---- modes and examples

function choose(mode, fields, example) {
  see(false);
  state.mode = mode;
  byId('mode').value = mode.name;
  byId('about').textContent = mode.about;
  byId('example').replaceChildren(element('option', { value: '' }, example === null ? 'your own' : 'choose one'),
    ...mode.examples.map((one, index) => element('option', { value: `${index}` }, `${one.title} (${one.outcome})`)));
  byId('example').value = example === null ? '' : `${example}`;
  byId('details').replaceChildren();
  byId('more').replaceChildren();
  byId('pictures').replaceChildren();
  drawPanes(fields);
  byId('result').setAttribute('aria-busy', 'true');
  ask();
}

function exampleOf(mode, index) {
  choose(mode, Object.fromEntries(mode.examples[index].fields), index);
}

// ---- what happens in a server

/** Shows either a mode or what happens. */
function see(live) {
  byId('live').hidden = !live;
  for (const id of ['panes', 'result']) byId(id).hidden = live;
  for (const id of ['example', 'copy']) byId(id).disabled = live;
  clearTimeout(state.looking);
  state.source?.close();
  state.source = null;
  state.live = live;
}

function chooseLive() {
  see(true);
  byId('about').textContent = 'Decisions, objects of the five systems and controllers, as they come. Nothing is written.';
  clearTimeout(state.timer);
  clearTimeout(state.pictureTimer);
  listen();
}

/** Shows what the server tells; where it has no place for one more who listens, this page looks now and then. */
function listen() {
  const source = new EventSource('live/events');
  state.source = source;
  source.addEventListener('seen', event => {
    trouble('');
    drawLive(JSON.parse(event.data));
  });
  source.addEventListener('trouble', event => trouble(JSON.parse(event.data).error));
  source.addEventListener('error', () => {
    if (state.source === source && source.readyState === EventSource.CLOSED) look();
  });
}

async function look() {
  let seen = null;
  try {
    const response = await fetch('live');
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.error ?? `the server answered ${response.status}`);
    seen = answer;
    trouble('');
  } catch (error) {
    trouble(`${error.message}`);
  }
  if (!state.live) return;
  if (seen) drawLive(seen);
  state.looking = setTimeout(look, LOOK);
}

function drawLive(seen) {
  const [newest] = seen.decisions;
  const said = newest ? `${newest.operation} of ${newest.resource} ${newest.object}: ${newest.outcome}` : 'nothing was decided yet';
  if (byId('live-state').textContent !== said) byId('live-state').textContent = said;
  byId('controllers').replaceChildren(...seen.controllers.map(one => element('li', {}, `${one.name}: `,
    element('span', { class: one.ready ? 'said-ready' : 'said-denied' }, one.ready ? 'ready' : 'not ready'), one.reason ? `, ${one.reason}` : '',
    `; looked at objects: ${one.reconciled}, errors: ${one.errors}, waiting: ${one.waiting}`)));
  const focused = document.activeElement?.dataset.key;
  byId('objects').replaceChildren(...seen.objects.map(one =>
    table(one.more > 0 ? `${one.title}, and ${one.more} more` : one.title, one.columns, one.rows)));
  byId('decisions').replaceChildren(table('Decisions', ['Time', 'Outcome', 'Operation', 'Resource', 'Object', 'User', 'Why'],
    seen.decisions.map(one => [one.at, element('span', { class: `said-${one.outcome}` }, one.outcome), one.operation, one.resource,
      one.object, one.user, one.why || (one.warnings > 0 ? `warnings: ${one.warnings}` : '')])));
  // What was scrolled by keyboard keeps the keyboard.
  if (focused) document.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
}

function table(title, columns, rows) {
  const head = element('tr', {}, ...columns.map(column => element('th', { scope: 'col' }, column)));
  const body = rows.map(row => element('tr', {}, ...row.map(cell => element('td', {}, cell))));
  const made = element('table', {}, element('caption', {}, rows.length > 0 ? title : `${title}: none`));
  if (rows.length > 0) made.append(element('thead', {}, head), element('tbody', {}, ...body));
  return element('div', { class: 'scrolls', tabindex: '0', role: 'region', 'aria-label': title, 'data-key': title }, made);
}

// ---- links

const base64url = bytes => {
  let text = '';
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
};

const fromBase64url = text => Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), c => c.charCodeAt(0));

async function packed(document) {
  const stream = new Blob([JSON.stringify(document)]).stream().pipeThrough(new CompressionStream('deflate-raw'));
  return base64url(new Uint8Array(await new Response(stream).arrayBuffer()));
}

async function unpacked(text) {
  const stream = new Blob([fromBase64url(text)]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  const reader = stream.getReader();
  const pieces = [];
  let length = 0;
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
    length += piece.value.length;
    if (length > MAX_LINK) throw new Error('it holds more than may be sent');
    pieces.push(piece.value);
  }
  return JSON.parse(await new Blob(pieces).text());
}

async function copyLink() {
  const link = await packed({ mode: state.mode.name, fields: texts() });
  // The address of the page is the link, so that it can be copied from there as well.
  history.replaceState(null, '', `#${link}`);
  try {
    await navigator.clipboard.writeText(location.href);
    byId('copied').textContent = 'copied';
  } catch {
    byId('copied').textContent = 'the address of this page is the link';
  }
}

/** Opens what a link holds; says so where it holds nothing that can be opened. */
async function openLink() {
  const text = location.hash.slice(1);
  if (text === '' || text === 'verdict') return false;
  try {
    const { mode: name, fields } = await unpacked(text);
    const mode = state.modes.find(one => one.name === name);
    const known = fields !== null && typeof fields === 'object' && Object.values(fields).every(one => typeof one === 'string');
    if (!mode || !known) throw new Error('it names no mode of this page');
    trouble('', 'broken');
    choose(mode, fields, null);
    return true;
  } catch (error) {
    trouble(`The link is broken: ${error.message}`, 'broken');
    return false;
  }
}

async function begin() {
  const response = await fetch('modes');
  const { modes, live } = await response.json();
  state.modes = modes;
  byId('mode').replaceChildren(...modes.map(mode => element('option', { value: mode.name }, mode.title)));
  if (live) byId('mode').append(element('option', { value: LIVE }, 'What happens in this server'));
  byId('mode').addEventListener('change', () => {
    trouble('', 'broken');
    if (byId('mode').value === LIVE) {
      chooseLive();
      return;
    }
    exampleOf(state.modes.find(mode => mode.name === byId('mode').value), 0);
  });
  byId('example').addEventListener('change', () => {
    const index = byId('example').value;
    if (index !== '') exampleOf(state.mode, Number(index));
  });
  byId('copy').addEventListener('click', copyLink);
  byId('choice').addEventListener('submit', event => event.preventDefault());
  window.addEventListener('hashchange', openLink);
  if (!await openLink()) exampleOf(state.modes[0], 0);
}

begin().catch(error => trouble(`The page cannot begin: ${error.message}`));
