// The web client: the HTTP API for what is asked, the WebSocket for what happens.

const $ = (id) => document.getElementById(id);
const store = window.localStorage;
let me = null;          // own profile
let access = null;      // access token
let socket = null;
let nextId = 1;
let watched = null;     // { game, players, away } of the game on screen
let lobby = new Map();  // open games by id
let maps = {};
let retryMs = 500;

async function api(method, path, body, isRetry = false) {
  const headers = { "Content-Type": "application/json" };
  if (access) headers.Authorization = `Bearer ${access}`;
  const response = await fetch(`/api${path}`, { method, headers, body: body && JSON.stringify(body) });
  if (response.status === 401 && access && !isRetry && (await refresh())) return api(method, path, body, true);
  const answer = response.status === 204 ? null : await response.json();
  if (!response.ok) throw Object.assign(new Error(answer.detail), answer);
  return answer;
}

function keep(tokens) {
  access = tokens.access_token;
  store.setItem("refresh_token", tokens.refresh_token);
}

// One refresh at a time: a refresh token is good once.
let refreshing = null;
function refresh() {
  refreshing ??= (async () => {
    const token = store.getItem("refresh_token");
    if (!token) return false;
    const response = await fetch("/api/auth/refresh", {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ refresh_token: token }),
    });
    if (response.ok) keep(await response.json());
    else if (response.status === 401) store.removeItem("refresh_token");
    return response.ok;
  })().finally(() => { refreshing = null; });
  return refreshing;
}

function show(id) {
  for (const name of ["welcome", "lobby", "game"]) $(name).hidden = name !== id;
}

function say(id, text) {
  $(id).textContent = text ?? "";
  $(id).hidden = !text;
}

// Run what a click asks for; an error is shown, never lost.
function on(id, event, action) {
  $(id).addEventListener(event, async (e) => {
    e.preventDefault();
    say("error");
    try { await action(e); } catch (error) { say("error", error.message); }
  });
}

function element(tag, text, className) {
  const node = document.createElement(tag);
  node.textContent = text ?? "";
  if (className) node.className = className;
  return node;
}

// --- Realtime -------------------------------------------------------------------------------

function connect() {
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  socket = new WebSocket(`${scheme}://${location.host}/ws/`, ["gameserver.v1", `bearer.${access}`]);
  socket.onopen = () => {
    retryMs = 500;
    if (watched) send("game.watch", { game_id: watched.game.game_id });
    else send("lobby.watch");
  };
  socket.onmessage = (message) => hear(JSON.parse(message.data));
  socket.onclose = async (event) => {
    if (!access) return;
    // With jitter, so that a restart does not bring everybody back at once.
    await new Promise((done) => setTimeout(done, retryMs * (0.5 + Math.random())));
    retryMs = Math.min(retryMs * 2, 10_000);
    if (event.code === 4401 && !(await refresh())) return logOut();
    if (event.code === 4403) return logOut();
    connect();
  };
}

function send(type, fields = {}) {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ id: nextId++, type, ...fields }));
}

const hearers = {
  "settings.snapshot": (m) => say("notice", m.flags?.message_of_the_day),
  "settings.changed": (m) => say("notice", m.flags?.message_of_the_day),
  "lobby.snapshot": (m) => { lobby = new Map(m.games.map((g) => [g.game_id, g])); drawLobby(); },
  "lobby.changed": (m) => {
    for (const game of m.games ?? []) lobby.set(game.game_id, game);
    for (const id of m.removed ?? []) lobby.delete(id);
    drawLobby();
  },
  "game.snapshot": (m) => { watched = { game: m.game, players: m.players, away: m.away }; drawGame(); },
  "game.changed": (m) => applyChange(m),
  "game.chat": (m) => logLine(`${m.username}: ${m.text}`),
  error: (m) => say("error", m.detail ?? m.code),
};

function hear(message) {
  hearers[message.type]?.(message);
}

function applyChange(change) {
  if (!watched || change.game.game_id !== watched.game.game_id) return;
  const players = new Map(watched.players.map((p) => [p.username, p]));
  const away = new Set(watched.away);
  for (const event of change.events) {
    if (event.type === "player_joined") players.set(event.player.username, event.player);
    if (event.type === "player_left") players.delete(event.username);
    if (event.type === "player_away") away.add(event.username);
    if (["player_back", "player_left", "player_eliminated"].includes(event.type)) away.delete(event.username);
    if (event.type === "player_eliminated") {
      Object.assign(players.get(event.username), { is_alive: false, placement: event.placement, eliminated_by: event.eliminated_by });
      if (players.has(event.eliminated_by)) players.get(event.eliminated_by).kills += 1;
    }
    if (event.type === "game_finished" && event.winner) players.get(event.winner).placement = 1;
    if (["game_finished", "game_cancelled"].includes(event.type)) away.clear();
    logLine(tell(event));
  }
  watched = { game: change.game, players: [...players.values()], away: [...away] };
  drawGame();
}

function tell(event) {
  switch (event.type) {
    case "player_joined": return `${event.player.display_name} joined`;
    case "player_left": return `${event.username} left`;
    case "player_away": return `${event.username} lost the connection`;
    case "player_back": return `${event.username} is back`;
    case "host_changed": return `${event.host} hosts the game now`;
    case "game_started": return "The game has started";
    case "player_eliminated": return event.eliminated_by ? `${event.eliminated_by} eliminated ${event.username}` : `${event.username} is out`;
    case "game_finished": return event.winner ? `${event.winner} wins` : "The game is over";
    case "game_cancelled": return "The game was cancelled";
    default: return event.type;
  }
}

// --- Screens --------------------------------------------------------------------------------

function drawLobby() {
  const games = [...lobby.values()].sort((a, b) => a.created_at.localeCompare(b.created_at));
  $("games").replaceChildren(...games.map((game) => {
    const row = document.createElement("tr");
    const join = element("button", "Join");
    join.onclick = () => enter(() => api("POST", `/games/${game.game_id}/join`));
    const cell = document.createElement("td");
    cell.append(join);
    row.append(element("td", maps[game.map] ?? game.map), element("td", game.host),
      element("td", `${game.player_count} / ${game.max_players}`), cell);
    return row;
  }));
}

function drawGame() {
  const { game, players, away } = watched;
  const mine = players.find((p) => p.username === me.username);
  $("game-title").textContent = maps[game.map] ?? game.map;
  $("game-state").textContent = {
    OPEN: `Waiting: ${game.player_count} of ${game.max_players} seats taken`,
    STARTED: `Playing: ${game.alive_count} still standing`,
    FINISHED: game.winner ? `Won by ${game.winner}` : "Over, without a winner",
    CANCELLED: "Cancelled",
  }[game.status];
  $("start").hidden = game.status !== "OPEN" || game.host !== me.username;
  $("start").disabled = game.player_count < game.min_players;
  $("leave").textContent = ["OPEN", "STARTED"].includes(game.status) && mine?.is_alive ? "Leave" : "Back to the lobby";
  $("players").replaceChildren(...players.map((player) => {
    const item = element("li", player.display_name, player.username === game.winner ? "winner" : player.is_alive ? "" : "out");
    if (away.includes(player.username)) item.append(element("small", "away"));
    const canHit = game.status === "STARTED" && mine?.is_alive && player.is_alive && player !== mine;
    if (canHit) {
      const hit = element("button", "Eliminate");
      hit.onclick = () => act(() => api("POST", `/games/${game.game_id}/eliminations`, { victim: player.username }));
      item.append(hit);
    } else {
      item.append(element("small", player.placement ? `#${player.placement}` : player.username === game.host ? "host" : ""));
    }
    return item;
  }));
}

function logLine(text) {
  $("log").prepend(element("li", text));
}

async function act(action) {
  say("error");
  try { return await action(); } catch (error) { say("error", error.message); return null; }
}

async function enter(action) {
  const game = await act(action);
  if (game) await openGame(game.game_id);
}

async function openGame(gameId) {
  const { players, ...game } = await api("GET", `/games/${gameId}`);
  watched = { game, players, away: [] };
  $("log").replaceChildren();
  show("game");
  drawGame();
  send("lobby.unwatch");
  send("game.watch", { game_id: gameId });
}

async function openLobby() {
  if (watched) send("game.unwatch", { game_id: watched.game.game_id });
  watched = null;
  show("lobby");
  const [games, leaders] = await Promise.all([api("GET", "/games?limit=100"), api("GET", "/leaderboard?limit=10")]);
  lobby = new Map(games.items.map((g) => [g.game_id, g]));
  drawLobby();
  $("leaders").replaceChildren(...leaders.items.map((l) => element("li", `${l.display_name}: ${l.wins} wins, ${l.kills} kills`)));
  send("lobby.watch");
}

async function begin() {
  me = await api("GET", "/players/me");
  $("me").textContent = me.display_name;
  $("log-out").hidden = false;
  connect();
  if (me.current_game) await openGame(me.current_game);
  else await openLobby();
}

function logOut() {
  access = null;
  me = null;
  watched = null;
  store.removeItem("refresh_token");
  socket?.close();
  $("me").textContent = "";
  $("log-out").hidden = true;
  show("welcome");
}

function deviceId() {
  if (!store.getItem("device_id")) {
    store.setItem("device_id", [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, "0")).join(""));
  }
  return store.getItem("device_id");
}

on("credentials", "submit", async (e) => {
  const { username, password } = Object.fromEntries(new FormData(e.target));
  if (e.submitter.value === "guest") keep(await api("POST", "/players/guest", { device_id: deviceId() }));
  else if (e.submitter.value === "sign-up") keep(await api("POST", "/players", { username, password }));
  else keep(await api("POST", "/auth/token", { username, password }));
  await begin();
});
on("find", "submit", async (e) => {
  const { map, max_players } = Object.fromEntries(new FormData(e.target));
  if (e.submitter.value === "create") {
    const body = { map: map || Object.keys(maps)[0], max_players: Number(max_players) };
    await openGame((await api("POST", "/games", body)).game_id);
  } else {
    await openGame((await api("POST", "/games/quick-join", map ? { map } : {})).game_id);
  }
});
on("start", "click", () => api("POST", `/games/${watched.game.game_id}/start`));
on("leave", "click", async () => {
  const { game, players } = watched;
  const mine = players.find((p) => p.username === me.username);
  if (["OPEN", "STARTED"].includes(game.status) && mine?.is_alive) await api("POST", `/games/${game.game_id}/leave`);
  await openLobby();
});
on("chat", "submit", (e) => {
  send("game.chat", { game_id: watched.game.game_id, text: e.target.text.value });
  e.target.reset();
});
on("log-out", "click", async () => {
  await api("POST", "/auth/logout").catch(() => null);
  logOut();
});

for (const { id, title } of await api("GET", "/maps")) {
  maps[id] = title;
  $("find").map.append(new Option(title, id));
}
if (await refresh()) await act(begin);
if (!me) show("welcome");
