//! What was meant by a name that nobody knows.

/// Of words of so many letters, and fewer, none is near: nearly any other is.
const SHORT: usize = 2;

/// The one of `known` that `word` is most likely a slip of: written with other capitals, or with a letter in three that is wrong,
/// missing, too many, or in the other's place. Of several the nearest, and of these the first; none where `word` is one itself.
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
        // Nothing is wrong with the word itself.
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

/// `did you mean ...?`, as a sentence of its own; without a name nothing.
#[must_use]
pub fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map(|nearest| format!("did you mean `{nearest}`?")).unwrap_or_default()
}

/// How many letters have to change, capitals aside, if no more than `most` do: Damerau's and Levenshtein's distance.
fn distance(word: &[char], known: &str, most: usize) -> Option<usize> {
    let known: Vec<char> = known.to_lowercase().chars().collect();
    if known.len().abs_diff(word.len()) > most {
        return None;
    }
    // Rows of the table: to the known word's first letters from the word's, the last two of them.
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
