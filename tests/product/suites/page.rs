//! The page of coverage in a real browser: its index leads to its files, what was not reached is marked, and it is dark where
//! readers like it so.

use std::fs;
use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::{admit, fixture};

/// Names under which a Chromium is installed.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Asks the page what a reader sees, and leaves the answer in its title.
const QUESTION: &str = "<script>
const width = bar => bar.getBoundingClientRect().width;
const seen = {
  ground: getComputedStyle(document.body).backgroundColor,
  links: [...document.querySelectorAll('td a')].map(link => [link.textContent, document.querySelector(link.hash).textContent]),
  bars: [...document.querySelectorAll('tr.none .bar:not(.cost)')].map(bar => [width(bar), width(bar.firstChild)]),
  full: [...document.querySelectorAll('tr.all .bar:not(.cost)')].map(bar => width(bar) - width(bar.firstChild)),
  marks: [...document.querySelectorAll('pre mark')].map(mark => [mark.textContent, mark.title]),
  costs: [...document.querySelectorAll('section.all .bar.cost')].map(bar => width(bar.firstChild)),
  loaded: performance.getEntriesByType('resource').length,
};
document.title = 'seen:' + btoa(unescape(encodeURIComponent(JSON.stringify(seen)))) + ':';
</script>";

pub(crate) fn browser() -> Option<&'static str> {
    BROWSERS.into_iter().find(|name| Command::new(name).arg("--version").output().is_ok())
}

/// What `question`, which leaves its answer in `seen`, finds out of a page as a reader sees it whose system is `dark` or not.
pub(crate) fn shown(browser: &str, page: &Path, question: &str, dark: bool) -> Value {
    let text = fs::read_to_string(page).unwrap();
    let asking = page.with_extension("asked.html");
    let answer = "document.title = 'seen:' + btoa(unescape(encodeURIComponent(JSON.stringify(seen)))) + ':';";
    let asked = text.replace("</body>", &format!("<script>{question}\n{answer}</script></body>"));
    fs::write(&asking, asked).unwrap();
    seen(browser, &asking, dark)
}

/// What a reader of the page sees whose system is `dark` or not.
fn seen(browser: &str, page: &Path, dark: bool) -> Value {
    let profile = tempfile::TempDir::new().unwrap();
    let mut command = Command::new(browser);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]);
    command.args(["--disable-component-update", "--disable-sync", "--no-first-run", "--dump-dom"]);
    command.arg(format!("--user-data-dir={}", profile.path().display()));
    command.args(dark.then_some("--blink-settings=preferredColorScheme=0"));
    let output = command.arg(format!("file://{}", page.display())).output().unwrap();
    let dom = String::from_utf8_lossy(&output.stdout);
    let told = dom.split_once("<title>seen:").and_then(|(_, behind)| behind.split_once(':'));
    let (told, _) = told.unwrap_or_else(|| panic!("{dom}\n{}", String::from_utf8_lossy(&output.stderr)));
    serde_json::from_slice(&STANDARD.decode(told).unwrap()).unwrap()
}

#[test]
fn the_page_of_coverage_shows_what_no_case_reached() {
    let Some(browser) = browser() else {
        return testing::skip(testing::Need::Chromium, "there is no chromium on the PATH");
    };
    let folder = tempfile::TempDir::new().unwrap();
    let page = folder.path().join("coverage.html");
    admit(&fixture(), &["--coverage-html", page.to_str().unwrap(), "failing.suite.yaml", "tests"]);
    let asked = fs::read_to_string(&page).unwrap().replace("</body>", &format!("{QUESTION}</body>"));
    fs::write(&page, asked).unwrap();
    let (light, dark) = (seen(browser, &page, false), seen(browser, &page, true));

    let links = light["links"].as_array().unwrap();
    assert_eq!(links.len(), 3, "{light:#}");
    assert!(links.iter().all(|link| link[0] == link[1]), "{light:#}");
    let none = light["bars"].as_array().unwrap();
    assert!(
        !none.is_empty() && none.iter().all(|bar| bar[0].as_f64() > Some(50.0) && bar[1] == 0),
        "{light:#}"
    );
    assert!(light["full"].as_array().unwrap().iter().all(|left| left.as_f64() < Some(0.5)), "{light:#}");
    let marks = light["marks"].as_array().unwrap();
    let is_marked = |text: &str, title: &str| marks.iter().any(|mark| mark[0] == text && mark[1] == title);
    assert!(is_marked("object.data.size() < 3", "term never true"), "{light:#}");
    assert!(light["costs"].as_array().unwrap().iter().any(|cost| cost.as_f64() > Some(1.0)), "{light:#}");
    assert_eq!(light["loaded"], 0, "it has nothing to load: {light:#}");
    assert_eq!(
        (&light["ground"], &dark["ground"]),
        (&"rgb(255, 255, 255)".into(), &"rgb(22, 24, 28)".into())
    );
}
