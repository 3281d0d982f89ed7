//! Renders pictures of states as SVG: states in a column, and beside it a lane for each change. Texts never overlap, whatever the
//! rules are: boxes are stacked, and lanes lie side by side, each with the number of its condition; the conditions are listed
//! below by these numbers. Colours follow the reader's system.
//!
//! It does its own layout because graph layout libraries place the labels of edges where edges cross.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use admit_analysis::states::{Allowance, Picture, Reach, Transition};

use crate::cli::states::Drawn;

/// The width of the picture (a page of text), unless the lanes need more.
const WIDTH: usize = 800;
/// The horizontal margin.
const MARGIN: usize = 16;
/// The width of a letter of the monospaced font.
const LETTER: usize = 8;
const LINE: usize = 20;
/// The most letters of a state's name in its box; longer names are listed below.
const NAME: usize = 24;
/// The distance between the ends of changes along the side of a box, and between lanes.
const PORT: usize = 16;
const LANE: usize = 25;
/// The distance between boxes.
const GAP: usize = 22;
/// The most letters in a line of the text below.
const COLUMNS: usize = (WIDTH - 2 * MARGIN) / LETTER;

const STYLE: &str = "\
:root { color-scheme: light dark; --ground: #ffffff; --ink: #1c1f24; --box: #eef2f7; --line: #44546a; --mark: #0b5cad }
@media (prefers-color-scheme: dark) {
  :root { --ground: #16181c; --ink: #e4e7eb; --box: #262b33; --line: #a3b1c2; --mark: #7fb8f5 }
}
text { font: 13px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; fill: var(--ink); white-space: pre }
.ground { fill: var(--ground) }
.state { fill: var(--box); stroke: var(--line) }
.never { stroke-dasharray: 4 3 }
.change { fill: none; stroke: var(--line) }
.arrow, .start { fill: var(--line) }
.badge { fill: var(--ground); stroke: var(--mark) }
.number { fill: var(--mark); text-anchor: middle }
.title { font-weight: bold }
";

/// Renders one SVG with all pictures below one another.
pub(in crate::cli) fn svg(drawn: &Drawn) -> String {
    let (mut body, mut top, mut width) = (String::new(), MARGIN, WIDTH);
    for picture in &drawn.pictures {
        let (bottom, right) = draw(&mut body, picture, top);
        (top, width) = (bottom, width.max(right));
    }
    let names: Vec<String> =
        drawn.pictures.iter().map(|picture| format!("{} {}", picture.kind.kind, picture.subject)).collect();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {top}\" width=\"{width}\" height=\"{top}\" role=\"img\">\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n<rect class=\"ground\" width=\"{width}\" height=\"{top}\"/>\n{body}</svg>\n",
        escaped(&names.join(", "))
    )
}

/// A change between two boxes of the column; box 0 is the start.
struct Change<'p> {
    from: usize,
    to: usize,
    transition: &'p Transition,
    /// The side: downward changes on the right, upward ones on the left.
    right: bool,
    lane: usize,
    /// Where it leaves and arrives, measured from the top of the picture.
    ends: (usize, usize),
}

/// Draws a picture from `top` on, and returns its lower and its right end.
fn draw(out: &mut String, picture: &Picture, top: usize) -> (usize, usize) {
    let mut below = Vec::new();
    text(out, MARGIN, top + 13, "title", &format!("{} {}", picture.kind.kind, picture.subject));
    let mut changes = changes(picture);
    let boxes = boxes(picture, &mut changes, top + LINE + MARGIN);
    let lanes = assign_lanes(&mut changes);
    let longest = picture.states.iter().map(|state| shortened(&state.name).chars().count()).max();
    let width = longest.unwrap_or_default().max(6) * LETTER + 2 * MARGIN;
    let left = MARGIN + (lanes.0 + 1) * LANE;
    let sides = Sides { left, right: left + width };
    for change in &changes {
        lane(out, change, sides);
    }
    states(out, picture, &boxes, sides, &mut below);
    badges(out, &changes, sides, &mut below);
    let undecided = picture.undecided().count();
    if undecided > 0 {
        below.push(format!("{undecided} more changes are undecided, and not drawn"));
    }
    let mut y = boxes.last().map_or(top, |(y, height)| y + height) + MARGIN + LINE;
    for said in below {
        for line in wrapped(&said) {
            text(out, MARGIN, y, "note", &line);
            y += LINE;
        }
    }
    (y + MARGIN, sides.right + (lanes.1 + 1) * LANE + MARGIN)
}

/// Draws the boxes of the states, and the start above them; notes about them are added to `below`.
fn states(
    out: &mut String,
    picture: &Picture,
    boxes: &[(usize, usize)],
    Sides { left, right }: Sides,
    below: &mut Vec<String>,
) {
    let width = right - left;
    let ends: Vec<&str> = picture.dead_ends().map(|(name, _)| name).collect();
    for (at, (y, height)) in boxes.iter().enumerate() {
        let Some(state) = at.checked_sub(1).and_then(|at| picture.states.get(at)) else {
            // Changes from the start go to the right, since no state is above it.
            let (x, y) = (left + width / 2, y + height / 2);
            let _ = writeln!(out, "<circle class=\"start\" cx=\"{x}\" cy=\"{y}\" r=\"7\"/>");
            let _ = writeln!(out, "<path class=\"change\" d=\"M{x} {y}H{}\"/>", left + width);
            continue;
        };
        let never = if state.reach == Reach::Reached { "" } else { " never" };
        let _ = writeln!(
            out,
            "<rect class=\"state{never}\" x=\"{left}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"6\"/>"
        );
        if ends.contains(&state.name.as_str()) {
            let (y, width, height) = (y + 3, width - 6, height - 6);
            let _ = writeln!(
                out,
                "<rect class=\"state\" x=\"{}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"4\"/>",
                left + 3
            );
        }
        let shown = shortened(&state.name);
        text(out, left + MARGIN, y + height / 2 + 5, "name", &shown);
        if shown != state.name {
            below.push(format!("{shown} is {}", state.name));
        }
        if state.reach == Reach::Unreachable {
            below.push(format!("{shown}: no object comes into it"));
        } else if state.reach == Reach::Undecided {
            below.push(format!("{shown}: undecided whether an object comes into it"));
        }
    }
}

/// The left and right ends of the column of boxes.
#[derive(Clone, Copy)]
struct Sides {
    left: usize,
    right: usize,
}

impl Sides {
    fn of(self, change: &Change<'_>) -> (usize, usize) {
        let away = (change.lane + 1) * LANE;
        if change.right {
            (self.right, self.right + away)
        } else {
            (self.left, self.left.saturating_sub(away))
        }
    }
}

fn changes<'p>(picture: &'p Picture) -> Vec<Change<'p>> {
    let place = |name: &str| picture.states.iter().position(|state| state.name == name).map(|at| at + 1);
    let change = |transition: &'p Transition| {
        let from = transition.from.as_deref().map_or(Some(0), place)?;
        let to = place(&transition.to)?;
        Some(Change { from, to, transition, right: from < to, lane: 0, ends: (0, 0) })
    };
    let mut changes: Vec<Change<'p>> = picture.allowed().filter_map(change).collect();
    // Short changes get lanes near the column, so that fewer lines cross.
    changes.sort_by_key(|change| (change.from.abs_diff(change.to), change.from, change.to));
    changes
}

/// Returns the top and the height of each box, the start's first, and sets distinct ends for the changes.
fn boxes(picture: &Picture, changes: &mut [Change<'_>], top: usize) -> Vec<(usize, usize)> {
    let count = picture.states.len() + 1;
    let at = |changes: &[Change<'_>], index: usize, right: bool| {
        changes
            .iter()
            .filter(|change| change.right == right && (change.from == index || change.to == index))
            .count()
    };
    let (mut boxes, mut y) = (Vec::with_capacity(count), top);
    for index in 0..count {
        let ports = at(changes, index, true).max(at(changes, index, false));
        let height = (ports + 1) * PORT;
        let height = height.max(2 * PORT);
        boxes.push((y, height));
        y += height + GAP;
    }
    let mut used: BTreeMap<(usize, bool), usize> = BTreeMap::new();
    let mut port = |index: usize, right: bool| {
        let number = used.entry((index, right)).or_insert(0);
        *number += 1;
        let (y, height) = boxes.get(index).copied().unwrap_or_default();
        // The start is one point, where all its changes begin.
        if index == 0 { y + height / 2 } else { y + *number * PORT }
    };
    for change in changes.iter_mut() {
        change.ends = (port(change.from, change.right), port(change.to, change.right));
    }
    boxes
}

/// Gives each change the nearest free lane. Returns the number of lanes on the left and on the right.
fn assign_lanes(changes: &mut [Change<'_>]) -> (usize, usize) {
    let mut lanes: BTreeMap<bool, Vec<Vec<(usize, usize)>>> = BTreeMap::new();
    for change in changes.iter_mut() {
        let (from, to) = change.ends;
        let span = (from.min(to), from.max(to));
        let side = lanes.entry(change.right).or_default();
        let is_free = |taken: &Vec<(usize, usize)>| {
            taken.iter().all(|(start, end)| span.1 + PORT <= *start || *end + PORT <= span.0)
        };
        let lane = side.iter().position(is_free).unwrap_or(side.len());
        if lane == side.len() {
            side.push(Vec::new());
        }
        if let Some(taken) = side.get_mut(lane) {
            taken.push(span);
        }
        change.lane = lane;
    }
    let count = |right| lanes.get(&right).map_or(0, Vec::len);
    (count(false), count(true))
}

fn lane(out: &mut String, change: &Change<'_>, sides: Sides) {
    let ((edge, away), (from, to)) = (sides.of(change), change.ends);
    let _ = writeln!(out, "<path class=\"change\" d=\"M{edge} {from}H{away}V{to}H{edge}\"/>");
    let tail = if change.right { edge + 8 } else { edge.saturating_sub(8) };
    let (above, below) = (to.saturating_sub(4), to + 4);
    let _ = writeln!(out, "<path class=\"arrow\" d=\"M{edge} {to}L{tail} {above}V{below}Z\"/>");
}

/// Draws the numbers of conditions on their lanes, and adds the conditions to `below`.
fn badges(out: &mut String, changes: &[Change<'_>], sides: Sides, below: &mut Vec<String>) {
    let mut ordered: Vec<&Change<'_>> = changes.iter().collect();
    ordered.sort_by_key(|change| (change.from, change.to));
    let mut number = 0;
    for change in ordered {
        let Allowance::Allowed { conditions, user, .. } = &change.transition.verdict else { continue };
        let by = user.iter().map(|user| format!("by {user} alone"));
        let said: Vec<String> =
            by.chain(conditions.iter().map(|rule| format!("if {}", rule.message))).collect();
        if said.is_empty() {
            continue;
        }
        number += 1;
        let ((_, x), (from, to)) = (sides.of(change), change.ends);
        let y = from.min(to) + from.abs_diff(to) / 2;
        let _ = writeln!(
            out,
            "<rect class=\"badge\" x=\"{}\" y=\"{}\" width=\"22\" height=\"16\" rx=\"8\"/>",
            x.saturating_sub(11),
            y.saturating_sub(8)
        );
        text(out, x, y + 5, "number", &number.to_string());
        let Transition { from, to, .. } = change.transition;
        let from = from.as_deref().unwrap_or("created");
        below.push(format!("{number}  {from} to {to}: {}", said.join("; ")));
    }
}

fn text(out: &mut String, x: usize, y: usize, class: &str, said: &str) {
    let _ = writeln!(out, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{}</text>", escaped(said));
}

fn shortened(name: &str) -> String {
    let name = if name.is_empty() { "''" } else { name };
    if name.chars().count() <= NAME {
        return name.to_owned();
    }
    let start: String = name.chars().take(NAME - 1).collect();
    format!("{start}…")
}

/// Breaks a text into lines that fit, between words if possible.
fn wrapped(said: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in said.split_whitespace() {
        let mut word: Vec<char> = word.chars().collect();
        while let Some(line) = lines.last_mut() {
            let taken = line.chars().count();
            let room = COLUMNS.saturating_sub(taken + 1);
            if word.len() <= room {
                line.push_str(if line.trim().is_empty() { "" } else { " " });
                line.extend(&word);
                break;
            }
            if !line.trim().is_empty() {
                lines.push(String::from("  "));
                continue;
            }
            line.extend(word.drain(..room));
            lines.push(String::new());
        }
    }
    lines
}

fn escaped(said: &str) -> String {
    said.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
