//! What a source file names by path: `crate::a::b`, `super::c`, `use admit_cel::{d, e::f}`, each as segments from the
//! crate's root. Comments, texts and `#[cfg(test)]` modules name nothing.

use std::collections::{BTreeMap, BTreeSet};

/// A path from the root of a crate: `["crate", "plan", "Program"]`, or `["admit_cel", "Value"]`.
pub(crate) type Path = Vec<String>;

/// Every path that the text names from `crate`, `self`, `super` or a package of ours. `module` is where the text stands.
pub(crate) fn named(text: &str, module: &[String]) -> BTreeSet<Path> {
    Reader::over(&tokens(text), BTreeMap::new(), module).found
}

/// A name that a `use` brings into a file.
pub(crate) struct Import {
    pub(crate) name: String,
    /// From the root of its crate.
    pub(crate) path: Path,
    /// Whether the file only passes it on: `pub use`, or `pub(crate) use`.
    pub(crate) passed_on: bool,
}

/// What a file imports, and every path that it names, imported names and those of its child modules among them.
pub(crate) struct Mentions {
    pub(crate) imports: Vec<Import>,
    pub(crate) found: BTreeSet<Path>,
}

pub(crate) fn mentions(text: &str, module: &[String]) -> Mentions {
    let tokens = tokens(text);
    let children = tokens.windows(3).filter(|window| window[0] == "mod" && window[2] == ";");
    let mut known: BTreeMap<String, Path> = children
        .map(|window| {
            let path = ["crate"].map(str::to_owned).into_iter().chain(module.iter().cloned());
            (window[1].clone(), path.chain([window[1].clone()]).collect())
        })
        .collect();
    let imports = Reader::over(&tokens, known.clone(), module).imports;
    known.extend(imports.iter().map(|import| (import.name.clone(), import.path.clone())));
    let read = Reader::over(&tokens, known, module);
    let used = imports.iter().filter(|import| !import.passed_on).map(|import| import.path.clone());
    let found = used.chain(read.found).collect();
    Mentions { imports, found }
}

/// The names that a crate's root or a folder's `mod.rs` re-exports, each with the path that it stands for.
pub(crate) fn re_exports(text: &str) -> Vec<(String, Path)> {
    let tokens = tokens(text);
    let mut exports = Vec::new();
    for (at, window) in tokens.windows(2).enumerate() {
        // Only what is re-exported: `pub use`, or `pub(crate) use`.
        let public = (at > 0) && matches!(tokens[at - 1].as_str(), "pub" | ")");
        if window[0] == "use" && public {
            tree(&tokens, at + 1, &mut Vec::new(), &mut |path, name| exports.push((name, path)));
        }
    }
    exports
}

struct Reader<'a> {
    tokens: &'a [String],
    at: usize,
    /// Modules within the file that are open, each with the depth of braces that closes it.
    scopes: Vec<(String, usize)>,
    depth: usize,
    /// Names that stand for a path: children and imports of the file, where those are of interest.
    known: BTreeMap<String, Path>,
    imports: Vec<Import>,
    found: BTreeSet<Path>,
}

impl<'a> Reader<'a> {
    fn over(tokens: &'a [String], known: BTreeMap<String, Path>, module: &[String]) -> Self {
        let mut reader = Self {
            tokens,
            at: 0,
            scopes: Vec::new(),
            depth: 0,
            known,
            imports: Vec::new(),
            found: BTreeSet::new(),
        };
        reader.read(module);
        reader
    }

    fn read(&mut self, module: &[String]) {
        while let Some(token) = self.tokens.get(self.at) {
            match token.as_str() {
                "{" => self.depth += 1,
                "}" => {
                    self.depth = self.depth.saturating_sub(1);
                    self.scopes.pop_if(|(_, depth)| *depth == self.depth);
                }
                "mod" if self.token(2) == "{" => {
                    if is_for_tests(self.tokens, self.at) {
                        self.at = block_end(self.tokens, self.at + 2);
                        continue;
                    }
                    self.scopes.push((self.token(1).to_owned(), self.depth));
                }
                "use" => {
                    let passed_on = self.at > 0 && matches!(self.tokens[self.at - 1].as_str(), "pub" | ")");
                    let mut paths = Vec::new();
                    self.at = tree(self.tokens, self.at + 1, &mut Vec::new(), &mut |path, name| {
                        paths.push((path, name));
                    });
                    for (path, name) in paths {
                        let Some(path) = self.absolute(path, module) else { continue };
                        self.imports.push(Import { name, path: path.clone(), passed_on });
                        // Whoever follows imports tells by them whether the file only passes the name on.
                        if self.known.is_empty() {
                            self.found.insert(path);
                        }
                    }
                    continue;
                }
                first if self.leads(first) && !self.goes_on() => {
                    let mut path = Vec::new();
                    while self.token(1) == "::" && is_name(self.token(2)) {
                        path.push(self.token(0).to_owned());
                        self.at += 2;
                    }
                    path.push(self.token(0).to_owned());
                    self.found.extend(self.absolute(path, module));
                }
                _ => {}
            }
            self.at += 1;
        }
    }

    fn token(&self, ahead: usize) -> &str {
        self.tokens.get(self.at + ahead).map_or("", String::as_str)
    }

    /// Whether the token begins a path of interest, or is a name that stands for one. A known name before a colon is a
    /// field or a variable.
    fn leads(&self, token: &str) -> bool {
        (begins(token) && self.token(1) == "::") || (self.known.contains_key(token) && self.token(1) != ":")
    }

    /// Whether the token belongs to a path that began before it, or is a member.
    fn goes_on(&self) -> bool {
        self.at > 0 && ["::", "."].contains(&self.tokens[self.at - 1].as_str())
    }

    /// The path from the root of its crate; none for those that are of no interest.
    fn absolute(&self, path: Path, module: &[String]) -> Option<Path> {
        let mut here: Vec<String> = module.to_vec();
        here.extend(self.scopes.iter().map(|(name, _)| name.clone()));
        let first = path.first()?;
        if let Some(known) = self.known.get(first).filter(|_| !begins(first)) {
            return Some(known.iter().chain(path.iter().skip(1)).cloned().collect());
        }
        if !begins(first) {
            return None;
        }
        Some(match first.as_str() {
            "self" | "super" => {
                let climbs = path.iter().take_while(|name| *name == "super").count();
                here.truncate(here.len().saturating_sub(climbs));
                let below = path.iter().skip_while(|name| ["self", "super"].contains(&name.as_str()));
                ["crate".to_owned()].into_iter().chain(here).chain(below.cloned()).collect()
            }
            _ => path,
        })
    }
}

/// Whether paths that are of interest here begin with the name.
fn begins(name: &str) -> bool {
    ["crate", "self", "super"].contains(&name) || name.starts_with("admit_")
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Reads one tree of a `use` and tells each path with the name that it gets; returns where the tree ends.
fn tree(tokens: &[String], mut at: usize, above: &mut Path, tell: &mut dyn FnMut(Path, String)) -> usize {
    let token = |at: usize| tokens.get(at).map_or("", String::as_str);
    let mut own = above.clone();
    loop {
        match token(at) {
            "{" => {
                at += 1;
                while !["}", ""].contains(&token(at)) {
                    at = tree(tokens, at, &mut own, tell);
                    at += usize::from(token(at) == ",");
                }
                return at + 1;
            }
            "*" => {
                tell(own, "*".to_owned());
                return at + 1;
            }
            "::" => at += 1,
            "as" => {
                tell(own, token(at + 1).to_owned());
                return at + 2;
            }
            // `a::{self}` is `a`.
            "self" if !own.is_empty() => at += 1,
            name if is_name(name) => {
                own.push(name.to_owned());
                at += 1;
            }
            _ => {
                let name = own.last().cloned().unwrap_or_default();
                tell(own, name);
                return at;
            }
        }
    }
}

/// The tokens of a text without its `#[cfg(test)]` modules.
pub(crate) fn product_tokens(text: &str) -> Vec<String> {
    let tokens = tokens(text);
    let mut product = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let opens = token == "mod" && tokens.get(at + 2).is_some_and(|next| next == "{");
        if opens && is_for_tests(&tokens, at) {
            at = block_end(&tokens, at + 2);
        } else {
            product.push(token.clone());
            at += 1;
        }
    }
    product
}

/// Whether `#[cfg(test)]` stands before what begins at `at`.
fn is_for_tests(tokens: &[String], at: usize) -> bool {
    let cfg = ["#", "[", "cfg", "(", "test", ")", "]"];
    tokens[at.saturating_sub(12)..at].windows(cfg.len()).any(|window| window == cfg)
}

/// Where the block goes on that begins at `at`.
fn block_end(tokens: &[String], at: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(at) {
        depth = match token.as_str() {
            "{" => depth + 1,
            "}" => depth - 1,
            _ => depth,
        };
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

/// Names, `::` and single signs; no comments, texts, characters or lifetimes.
pub(crate) fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = length_of(rest, first);
        let (token, after) = rest.split_at(length);
        rest = after;
        let told = is_name(token) || token == "::" || (length == 1 && !first.is_whitespace() && first != '"');
        if told && !token.starts_with("r\"") && !token.starts_with("r#\"") {
            tokens.push(token.to_owned());
        }
    }
    tokens
}

/// How many bytes the token at the beginning of `rest` takes.
fn length_of(rest: &str, first: char) -> usize {
    let until =
        |end: &str, from: usize| rest[from..].find(end).map_or(rest.len(), |at| from + at + end.len());
    match first {
        '/' if rest.starts_with("//") => until("\n", 2),
        '/' if rest.starts_with("/*") => until("*/", 2),
        'r' | 'b' | 'c' if raw_text(rest).is_some() => {
            let (start, hashes) = raw_text(rest).unwrap_or_default();
            until(&format!("\"{}", "#".repeat(hashes)), start)
        }
        '"' => text_length(rest),
        '\'' => character_length(rest),
        ':' if rest.starts_with("::") => 2,
        c if c.is_alphanumeric() || c == '_' => {
            rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
        }
        c => c.len_utf8(),
    }
}

/// Where the content of a raw text begins, and how many hashes end it; `r"…"`, `r#"…"#`, `br"…"`.
fn raw_text(rest: &str) -> Option<(usize, usize)> {
    let begin = rest.find('r').filter(|at| *at <= 1)? + 1;
    let hashes = rest[begin..].find(|c| c != '#')?;
    rest[begin + hashes..].starts_with('"').then_some((begin + hashes + 1, hashes))
}

fn text_length(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    rest.len()
}

/// A character's length, or that of a lifetime's quote alone.
fn character_length(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some((at, c))) => {
            let after = at + c.len_utf8();
            rest[after..].find('\'').map_or(rest.len(), |end| after + end + 1)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, module: &[&str]) -> Vec<String> {
        let module: Vec<String> = module.iter().map(|name| (*name).to_owned()).collect();
        named(text, &module).into_iter().map(|path| path.join("::")).collect()
    }

    #[test]
    fn paths_are_told_from_the_root_of_the_crate() {
        let text =
            "use crate::{plan::{self, Program}, value};\nuse admit_cel::Value as V;\nlet x = super::run();";
        let all =
            ["admit_cel::Value", "crate::eval::run", "crate::plan", "crate::plan::Program", "crate::value"];
        assert_eq!(of(text, &["eval", "step"]), all);
        assert_eq!(
            of("use super::super::kit::{self,\n    wait::Wait};", &["a", "b"]),
            ["crate::kit", "crate::kit::wait::Wait"]
        );
        assert_eq!(of("mod inner { use super::x; } use self::y;", &["a"]), ["crate::a::x", "crate::a::y"]);
    }

    #[test]
    fn comments_texts_and_tests_name_nothing() {
        let text =
            "// crate::a\n/* crate::b */ \"crate::c \\\" crate::d\" r#\"crate::e\" crate::f\"# '\"' crate::g";
        assert_eq!(of(text, &[]), ["crate::g"]);
        assert_eq!(of("fn f<'a>(x: &'a str) -> crate::a::B<'a> { '\\u{27}' }", &[]), ["crate::a::B"]);
        assert_eq!(
            of("#[cfg(test)]\nmod tests { use crate::a; fn f() {} } use crate::b;", &[]),
            ["crate::b"]
        );
    }

    #[test]
    fn what_a_root_passes_on_is_known() {
        let all =
            re_exports("use cost::Size;\npub use cost::{Bounds, Meter as M};\npub(crate) use self::a::B;");
        let all: Vec<_> = all.iter().map(|(name, path)| format!("{name}={}", path.join("::"))).collect();
        assert_eq!(all, ["Bounds=cost::Bounds", "M=cost::Meter", "B=self::a::B"]);
    }
}
