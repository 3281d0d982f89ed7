//! As many random pairs of a rule and an object as are asked for, in rounds that a file remembers.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;

use super::agreement::{Compared, Of, compare};
use super::dice::Dice;
use super::solvers::{Program, Soon, tell};

/// Rules of a round, and objects that are thrown for each: about a third of them is valid.
const RULES: usize = 10;
const OBJECTS: usize = 180;

/// What rounds came to, the ones before this run among them: each is known by its seed and by what its rules are.
#[derive(Default)]
struct Tally {
    done: BTreeSet<String>,
    distinct: BTreeSet<u64>,
    differ: usize,
    silent: usize,
    undecided: usize,
}

impl Tally {
    fn read(text: &str) -> Self {
        let mut tally = Self::default();
        // A line that was cut off counts for nothing.
        for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
            let mut words = line.split(' ');
            let name = [words.next(), words.next()].map(Option::unwrap_or_default).join(" ");
            let mut number = || words.next().and_then(|word| word.parse::<usize>().ok()).expect("a number");
            let (differ, silent, undecided) = (number(), number(), number());
            tally.done.insert(name);
            tally.differ += differ;
            tally.silent += silent;
            tally.undecided += undecided;
            let pairs = words.map(|word| u64::from_str_radix(word, 16).expect("a number"));
            tally.distinct.extend(pairs);
        }
        tally
    }

    /// Counts a round; its line.
    fn add(&mut self, name: String, found: &Compared) -> String {
        let mut line = format!("{name} {} {} {}", found.wrong.len(), found.silent, found.undecided);
        for pair in &found.pairs {
            let _ = write!(line, " {pair:x}");
        }
        self.done.insert(name);
        self.differ += found.wrong.len();
        self.silent += found.silent;
        self.undecided += found.undecided;
        self.distinct.extend(&found.pairs);
        line + "\n"
    }
}

/// `ADMIT_PAIRS=100000 ADMIT_ROUNDS=FILE cargo test -p admit-analysis --test analysis many_pairs -- --ignored --nocapture`: runs
/// rounds until that many distinct pairs were compared. Rounds that the file has are not run again, and their pairs count.
#[test]
#[ignore = "takes hours"]
fn many_pairs_agree() {
    let pairs = std::env::var("ADMIT_PAIRS").ok().and_then(|pairs| pairs.parse().ok()).unwrap_or(100_000);
    let path = std::env::var_os("ADMIT_ROUNDS");
    let text = path.as_ref().and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
    let mut tally = Tally::read(&text);
    let mut rounds = path.map(|path| {
        let file = OpenOptions::new().create(true).append(true).open(path).expect("a file");
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        file.set_len(u64::try_from(whole).expect("fits")).expect("what was cut off is taken away");
        file
    });
    assert_eq!(Program::installed().len(), 2, "both solvers are asked");
    let kinds = [Of::Creation, Of::Update, Of::Policy];
    let all = (0_u64..).flat_map(|seed| kinds.map(|of| (seed, of)));
    for (seed, of) in all {
        if tally.distinct.len() >= pairs {
            break;
        }
        let name = format!("{seed} {of:?}");
        if tally.done.contains(&name) {
            continue;
        }
        let found = compare(&mut Soon, &mut Dice::of(seed), of, RULES, OBJECTS);
        found.wrong.iter().for_each(|wrong| tell(&format!("{name} differs: {wrong}")));
        let line = tally.add(name.clone(), &found);
        rounds.iter_mut().for_each(|file| file.write_all(line.as_bytes()).expect("written"));
        tell(&format!("{name}: {} distinct pairs, {} differ", tally.distinct.len(), tally.differ));
    }
    let Tally { distinct, differ, silent, undecided, .. } = tally;
    tell(&format!(
        "{} distinct pairs, {differ} differ; {silent} not answered, {undecided} scripts undecided",
        distinct.len()
    ));
    assert_eq!(differ, 0);
}

#[test]
fn rounds_that_a_file_has_count_and_half_of_one_does_not() {
    let mut tally = Tally::default();
    let found = Compared { pairs: vec![10, 11, 10], silent: 2, undecided: 1, wrong: vec!["x".to_owned()] };
    let mut text = tally.add("0 Creation".to_owned(), &found);
    text.push_str(&tally.add("0 Update".to_owned(), &Compared { pairs: vec![11], ..Compared::default() }));
    text.push_str("0 Policy 0 0 0 ab");
    let read = Tally::read(&text);
    assert_eq!(read.done, tally.done);
    assert_eq!(read.distinct, BTreeSet::from([10, 11]));
    assert_eq!((read.differ, read.silent, read.undecided), (1, 2, 1));
}
