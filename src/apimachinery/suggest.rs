//! Suggests a known name for an unknown one.

/// Words with so many letters or fewer have no suggestion: nearly any other word is similar.
const SHORT: usize = 2;

/// Returns the entry of `known` that `word` is most likely a misspelling of: with different case, or with one in three letters wrong,
/// missing, additional or swapped. Of several the most similar, and of these the first; None if `word` itself is known.
///
/// ```
/// use admit_apimachinery::suggest::nearest;
///
/// assert_eq!(nearest("deployment", ["daemonsets", "deployments"]), Some("deployments"));
/// assert_eq!(nearest("failurePolcy", ["failurePolicy", "matchPolicy"]), Some("failurePolicy"));
/// assert_eq!(nearest("pods", ["nodes", "secrets"]), None);
/// ```
pub fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let letters: Vec<char> = word.to_lowercase().chars().collect();
    let most = if letters.len() <= SHORT { 0 } else { (letters.len() / 3).max(1) };
    let mut nearest: Option<(usize, &str)> = None;
    for known in known {
        // The word itself is known.
        if known == word {
            return None;
        }
        let found = distance(&letters, known, most);
        let is_nearer = |found: &usize| nearest.is_none_or(|(best, _)| *found < best);
        if let Some(found) = found.filter(is_nearer) {
            nearest = Some((found, known));
        }
    }
    nearest.map(|(_, known)| known)
}

/// Returns the sentence `did you mean ...?`; empty without a name.
#[must_use]
pub fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map(|nearest| format!("did you mean `{nearest}`?")).unwrap_or_default()
}

/// Returns the Damerau-Levenshtein distance ignoring case, if it is at most `most`.
fn distance(word: &[char], known: &str, most: usize) -> Option<usize> {
    let known: Vec<char> = known.to_lowercase().chars().collect();
    if known.len().abs_diff(word.len()) > most {
        return None;
    }
    // Rows of the table for prefixes of the known word: the last two are needed.
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=word.len()).collect();
    let mut last: Option<char> = None;
    for (at, letter) in known.iter().enumerate() {
        let mut next = vec![at.saturating_add(1)];
        for (column, own) in word.iter().enumerate() {
            let cell = |row: &[usize], column: usize| row.get(column).copied().unwrap_or(usize::MAX);
            let other = usize::from(own != letter);
            let mut least = cell(&row, column)
                .saturating_add(other)
                .min(cell(&row, column.saturating_add(1)).saturating_add(1))
                .min(cell(&next, column).saturating_add(1));
            let swapped = column.checked_sub(1).filter(|left| word.get(*left) == Some(letter));
            if let Some(left) = swapped.filter(|_| last == Some(*own)) {
                least = least.min(cell(&before, left).saturating_add(1));
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
        last = Some(*letter);
    }
    row.last().copied().filter(|distance| *distance <= most)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn slips_are_found_and_other_words_are_not() {
        let known =
            ["startsWith", "endsWith", "replicas", "validations", "CustomResourceDefinition", "a", "of"];
        for (word, meant) in [
            ("startWith", Some("startsWith")),
            ("StartsWith", Some("startsWith")),
            ("repilcas", Some("replicas")),
            ("replcas", Some("replicas")),
            ("CustomResourceDefinitions", Some("CustomResourceDefinition")),
            ("validation", Some("validations")),
            ("replicas", None),
            ("selector", None),
            ("b", None),
            ("in", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), meant, "{word}");
        }
        assert_eq!(nearest("cats", ["bats", "cuts"]), Some("bats"), "of equals the first");
    }
}
