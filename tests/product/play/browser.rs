//! The page as its readers use it: every mode, by keyboard alone, on a narrow screen, in both colour schemes; nothing is loaded from
//! elsewhere, nothing fails, a late answer changes nothing, and a link holds all that was typed.

use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use super::routes::unfit;
use super::{Play, fields};
use crate::running::Workplace;
use crate::support::webdriver::Browser;

/// The newest question is answered and shown.
const SETTLED: &str = "document.getElementById('result').getAttribute('aria-busy') === 'false'
    && document.getElementById('verdict').textContent !== ''";

const TAB: char = '\u{e004}';
const ENTER: char = '\u{e007}';
const DOWN: char = '\u{e015}';
const CONTROL: &str = "\u{e009}";

/// Types a text into a pane.
const TYPE: &str = "const area = document.getElementById('pane-' + arguments[0]);
    area.value = arguments[1];
    area.dispatchEvent(new Event('input', {bubbles: true}));";

/// Chooses a mode or an example.
const CHOOSE: &str = "const list = document.getElementById(arguments[0]);
    list.value = arguments[1];
    list.dispatchEvent(new Event('change', {bubbles: true}));";

/// Visible texts whose colours are nearer to each other than readers can tell apart, with the ratio.
const PALE: &str = "
const channels = text => (text.match(/[0-9.]+/g) ?? []).map(Number);
const luminance = ([r, g, b]) => {
  const part = one => { const s = one / 255; return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4; };
  return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
};
const ground = one => {
  for (let at = one; at; at = at.parentElement) {
    const colour = channels(getComputedStyle(at).backgroundColor);
    if (colour.length === 3 || colour[3] === 1) return colour;
  }
  return [255, 255, 255];
};
const ratio = one => {
  const [light, dark] = [luminance(channels(getComputedStyle(one).color)), luminance(ground(one))].sort((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05);
};
const own = one => ['TEXTAREA', 'SELECT'].includes(one.tagName) || [...one.childNodes].some(child => child.nodeType === 3 && child.data.trim());
const seen = [...document.body.querySelectorAll('*')].filter(one => one.tagName !== 'OPTION' && own(one) && one.checkVisibility());
return {
  texts: seen.length,
  pale: seen.filter(one => ratio(one) < 4.5).map(one => `${ratio(one).toFixed(2)} ${one.tagName} ${one.className} ${one.textContent.slice(0, 40)}`),
  ground: getComputedStyle(document.body).backgroundColor,
};";

/// Elements that reach beyond the screen, where they do not scroll by themselves.
const WIDE: &str = "return {
  whole: window.innerWidth, page: document.documentElement.scrollWidth, screen: document.documentElement.clientWidth,
  wide: [...document.body.querySelectorAll('*')].filter(one => one.getBoundingClientRect().right > document.documentElement.clientWidth + 1
    && !one.closest('textarea, .skip, .scrolls')).map(one => one.tagName + ' ' + one.className),
};";

/// Addresses of all that was loaded, but for this page's own.
const FOREIGN: &str = "return performance.getEntriesByType('resource').map(one => one.name).filter(name => new URL(name).origin !== location.origin);";

async fn opened(play: &Play) -> Option<Browser> {
    let mut browser = Browser::start().await?;
    browser.go_to(&play.url()).await;
    browser.until(SETTLED).await;
    Some(browser)
}

async fn verdict(browser: &mut Browser) -> Value {
    browser
        .run(
            "const verdict = document.getElementById('verdict'); return [verdict.dataset.outcome, verdict.textContent];",
            json!([]),
        )
        .await
}

/// Nothing failed, and nothing came from elsewhere.
async fn clean(browser: &mut Browser) {
    assert_eq!(browser.errors().await, Vec::<String>::new());
    assert_eq!(browser.run(FOREIGN, json!([])).await, json!([]));
}

#[tokio::test]
async fn every_mode_shows_every_example() {
    let play = Play::start(&["--timeout", "60s"]);
    let Some(mut browser) = opened(&play).await else { return };
    for mode in play.modes().await {
        let name = &mode["name"];
        browser.run(CHOOSE, json!(["mode", name])).await;
        for (index, example) in mode["examples"].as_array().unwrap().iter().enumerate() {
            browser.run(CHOOSE, json!(["example", index.to_string()])).await;
            browser.until(SETTLED).await;
            let shown = verdict(&mut browser).await;
            assert_eq!(shown[0], example["outcome"], "{name}: {shown}");
            let panes = browser
                .run("return Object.fromEntries([...document.querySelectorAll('textarea')].map(area => [area.name, area.value]));", json!([]))
                .await;
            for (pane, text) in fields(example).as_object().unwrap() {
                assert_eq!(&panes[pane], text, "{name}");
            }
        }
        let bars =
            browser.run("return document.querySelectorAll('.cost svg rect.part').length;", json!([])).await;
        assert!(bars.as_u64() > Some(0) || name == "crd", "{name}: no cost is drawn");
    }
    browser.run(CHOOSE, json!(["mode", "crd"])).await;
    let width = "document.querySelector('#pictures img')?.complete && document.querySelector('#pictures img').naturalWidth";
    assert!(browser.until(width).await.as_u64() > Some(100), "the picture of the states is drawn");
    clean(&mut browser).await;
}

#[tokio::test]
async fn everything_can_be_done_by_keyboard_alone() {
    let play = Play::start(&[]);
    let Some(mut browser) = opened(&play).await else { return };
    let active = "return document.activeElement.id;";
    browser.press("", &TAB.to_string()).await;
    assert_eq!(browser.run("return document.activeElement.className;", json!([])).await, "skip");
    browser.press("", &TAB.to_string()).await;
    assert_eq!(browser.run(active, json!([])).await, "mode");
    // From the first mode to the last.
    browser.press("", &DOWN.to_string().repeat(play.modes().await.len() - 1)).await;
    browser.until("document.getElementById('pane-expression')").await;
    browser.press("", &format!("{TAB}{TAB}{TAB}")).await;
    assert_eq!(browser.run(active, json!([])).await, "pane-expression");
    let outline = "return getComputedStyle(document.activeElement).outlineStyle;";
    assert_eq!(browser.run(outline, json!([])).await, "solid", "the focus is seen");
    browser.press(CONTROL, "a").await;
    browser.press("", "6 * 7 +").await;
    browser.until("document.querySelector('#mistakes-expression button')").await;
    let invalid = "return document.activeElement.getAttribute('aria-invalid');";
    assert_eq!(browser.run(invalid, json!([])).await, "true");
    // To the mistake, and from there to its place.
    browser.press("", &TAB.to_string()).await;
    browser.press("", &ENTER.to_string()).await;
    assert_eq!(browser.run(active, json!([])).await, "pane-expression");
    browser.press(CONTROL, "a").await;
    browser.press("", "[6 * 7, 2].map(n, n + 1)").await;
    browser.until("document.getElementById('verdict').textContent === '[43, 3]'").await;
    // On to the details of the expression, which close and open.
    let mut steps = 0;
    while browser.run("return document.activeElement.tagName;", json!([])).await != "SUMMARY" {
        browser.press("", &TAB.to_string()).await;
        steps += 1;
        assert!(steps < 20, "no Tab leads to the details");
    }
    for open in [false, true] {
        browser.press("", &ENTER.to_string()).await;
        assert_eq!(browser.run("return document.activeElement.parentElement.open;", json!([])).await, open);
    }
    let tree = browser.run("return document.querySelector('.tree').textContent;", json!([])).await;
    assert!(tree.as_str().unwrap().contains("#0 n + 1 = 43"), "{tree}");
    clean(&mut browser).await;
}

#[tokio::test]
async fn a_narrow_screen_and_both_colour_schemes_can_be_read() {
    let play = Play::start(&[]);
    let Some(mut browser) = opened(&play).await else { return };
    let narrow = json!({"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": false});
    browser.tell("Emulation.setDeviceMetricsOverride", narrow).await;
    let mut grounds = Vec::new();
    for scheme in ["light", "dark"] {
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        browser.tell("Emulation.setEmulatedMedia", features).await;
        for mode in play.modes().await {
            browser.run(CHOOSE, json!(["mode", mode["name"]])).await;
            browser.until(SETTLED).await;
            look(&mut browser, &format!("{scheme}, {}", mode["name"])).await;
            browser.run(TYPE, json!([mode["panes"][0]["name"], "kind: [\n"])).await;
            browser.until("document.querySelector('.mistakes button')").await;
            look(&mut browser, &format!("{scheme}, {}, with a mistake", mode["name"])).await;
        }
        grounds.push(browser.run(PALE, json!([])).await["ground"].clone());
    }
    assert_ne!(grounds[0], grounds[1]);
    clean(&mut browser).await;
}

/// Every text can be told from its ground, and nothing reaches beyond the screen.
async fn look(browser: &mut Browser, what: &str) {
    browser.run("for (const one of document.querySelectorAll('details')) one.open = true;", json!([])).await;
    let seen = browser.run(PALE, json!([])).await;
    assert!(seen["texts"].as_u64() > Some(10), "{what}: {seen:#}");
    assert_eq!(seen["pale"], json!([]), "{what}");
    let width = browser.run(WIDE, json!([])).await;
    assert_eq!((&width["whole"], &width["page"]), (&json!(360), &width["screen"]), "{what}: {width:#}");
    assert_eq!(width["wide"], json!([]), "{what}");
}

/// Holds back the answers of questions while `window.hold` is set.
const HOLD: &str = "const real = window.fetch; window.held = [];
window.fetch = async (path, options) => {
  if (!window.hold) return real(path, options);
  await new Promise(release => window.held.push(release));
  const response = await real(path, options), json = response.json.bind(response);
  response.json = async () => { const value = await json(); setTimeout(() => { window.late = true; }); return value; };
  return response;
};";

#[tokio::test]
async fn a_late_answer_changes_nothing() {
    let play = Play::start(&[]);
    let Some(mut browser) = opened(&play).await else { return };
    browser.run(CHOOSE, json!(["mode", "expression"])).await;
    browser.until(SETTLED).await;
    browser.run(HOLD, json!([])).await;
    browser.run("window.hold = true;", json!([])).await;
    browser.run(TYPE, json!(["expression", "'early'"])).await;
    browser.until("window.held.length === 1").await;
    browser.run("window.hold = false;", json!([])).await;
    browser.run(TYPE, json!(["expression", "'new'"])).await;
    let shown = "document.getElementById('verdict').textContent === '\"new\"'";
    browser.until(shown).await;
    browser.run("window.held[0]();", json!([])).await;
    browser.until("window.late").await;
    assert_eq!(browser.run(&format!("return {shown};"), json!([])).await, true);
    clean(&mut browser).await;
}

#[tokio::test]
async fn a_link_holds_the_whole_example_and_a_broken_one_says_so() {
    let play = Play::start(&[]);
    let Some(mut browser) = opened(&play).await else { return };
    browser.run(CHOOSE, json!(["mode", "expression"])).await;
    browser.until(SETTLED).await;
    browser.run(TYPE, json!(["expression", "self.name + ' <b>ünd</b> ' + self.name // «ok»"])).await;
    browser.run(TYPE, json!(["variables", "self: {name: Zoë}"])).await;
    browser.until("document.getElementById('verdict').textContent.includes('Zoë <b>ünd</b> Zoë')").await;
    browser.run("document.getElementById('copy').click();", json!([])).await;
    browser.until("document.getElementById('copied').textContent").await;
    let link = browser.run("return location.href;", json!([])).await;
    let link = link.as_str().unwrap().to_owned();
    assert!(link.contains('#') && link.is_ascii(), "{link}");

    browser.go_to("about:blank").await;
    browser.go_to(&link).await;
    browser.until("document.getElementById('verdict').textContent.includes('Zoë <b>ünd</b> Zoë')").await;
    let restored =
        "return [document.getElementById('mode').value, document.getElementById('pane-variables').value];";
    assert_eq!(browser.run(restored, json!([])).await, json!(["expression", "self: {name: Zoë}"]));
    // What others wrote is text, wherever it is shown.
    assert_eq!(browser.run("return document.querySelectorAll('main b').length;", json!([])).await, 0);
    clean(&mut browser).await;

    for broken in ["AAAA", "%%%", &link[link.find('#').unwrap() + 1..link.len() - 8]] {
        browser.go_to("about:blank").await;
        browser.go_to(&format!("{}#{broken}", play.url())).await;
        browser.until(SETTLED).await;
        let told = browser
            .run(
                "const told = document.getElementById('broken'); return [told.hidden, told.textContent];",
                json!([]),
            )
            .await;
        assert_eq!(told[0], false, "{broken}: {told}");
        assert!(told[1].as_str().unwrap().starts_with("The link is broken: "), "{told}");
        clean(&mut browser).await;
    }
}

/// A decision of the API server, its objects and its controllers, as they come.
#[tokio::test]
async fn a_page_of_a_server_shows_what_happens() {
    let place = Workplace::new();
    let running = place.start_with(&["--page"]);
    let log = place.log();
    let address = log.lines().find(|line| line.contains("page") && line.contains("address"));
    let address = address.and_then(|line| line.split_once("127.0.0.1:")).unwrap_or_else(|| panic!("{log}"));
    let port: String = address.1.chars().take_while(char::is_ascii_digit).collect();
    no_more_listen_than_may(port.parse().unwrap()).await;
    let Some(mut browser) = Browser::start().await else { return };
    browser.go_to(&format!("http://127.0.0.1:{port}/")).await;
    browser.until(SETTLED).await;
    browser.run(CHOOSE, json!(["mode", "live"])).await;
    browser.until("document.querySelectorAll('#controllers .said-ready').length > 3").await;

    let gathers: Api<DynamicObject> = Api::all_with(place.client().await, &resource());
    let mut gather = DynamicObject::new("periodic-gathering-x", &resource()).data(json!({"spec": {}}));
    let refused = gathers.create(&PostParams::default(), &gather).await;
    assert!(refused.unwrap_err().to_string().contains("reserved"));
    let denied = "document.querySelector('#decisions .said-denied')?.closest('tr').textContent.includes('are reserved')";
    browser.until(denied).await;
    // It was told, and did not look.
    let looks =
        "performance.getEntriesByType('resource').filter(one => one.name.endsWith('/live')).length === 0";
    browser.until(looks).await;
    gather.metadata.name = Some("seen".to_owned());
    gathers.create(&PostParams::default(), &gather).await.unwrap();
    let row = "[...document.querySelectorAll('#objects tr')].some(row => row.textContent.includes('seen') && /Pending|Running|Completed/.test(row.textContent))";
    browser.until(row).await;
    let narrow = json!({"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": false});
    browser.tell("Emulation.setDeviceMetricsOverride", narrow).await;
    let width = browser.run(WIDE, json!([])).await;
    assert_eq!(width["page"], width["screen"], "{width:#}");
    assert_eq!(browser.run(PALE, json!([])).await["pale"], json!([]));
    // And back to what is decided while somebody types.
    browser.run(CHOOSE, json!(["mode", "expression"])).await;
    browser.until(SETTLED).await;
    assert_eq!(verdict(&mut browser).await[0], "value");
    clean(&mut browser).await;
    assert!(running.terminate().success());
}

fn resource() -> ApiResource {
    let kind = GroupVersionKind::gvk("insights.openshift.io", "v1alpha1", "DataGather");
    ApiResource::from_gvk(&kind)
}

/// Each listener is told what is seen at once; one too many is refused, and has a place when another goes.
async fn no_more_listen_than_may(port: u16) {
    let listen = async || {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let head = format!("GET /live/events HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut lines = BufReader::new(stream).lines();
        let status = lines.next_line().await.unwrap().unwrap();
        (status, lines)
    };
    let mut listeners = Vec::new();
    for _ in 0..16 {
        let (status, mut lines) = listen().await;
        assert_eq!(status, "HTTP/1.1 200 OK");
        let data = loop {
            let line = lines.next_line().await.unwrap().unwrap();
            if let Some(data) = line.strip_prefix("data: ") {
                break data.to_owned();
            }
        };
        assert_eq!(unfit("playLive", &serde_json::from_str(&data).unwrap()), Vec::<String>::new());
        listeners.push(lines);
    }
    let (status, _) = listen().await;
    assert_eq!(status, "HTTP/1.1 503 Service Unavailable");
    drop(listeners);
    // Connections end when their server notices.
    while listen().await.0 != "HTTP/1.1 200 OK" {
        tokio::task::yield_now().await;
    }
}
