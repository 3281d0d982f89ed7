//! Words that stand in secrets, and must stand nowhere else.

/// In lower case: the word as it is, and what base64 makes of it in each of its three places.
const TOLD: [&str; 4] = ["canary", "y2fuyxj5", "jyw5hcn", "nhbmfye"];

/// Whether a text shows one.
pub(crate) fn shows(text: &str) -> bool {
    let text = text.to_lowercase();
    TOLD.iter().any(|part| text.contains(part))
}

/// The first line of all that was told that shows one.
pub(crate) fn hit<'t>(told: impl IntoIterator<Item = &'t String>) -> Option<&'t str> {
    told.into_iter().flat_map(|text| text.lines()).find(|line| shows(line))
}
