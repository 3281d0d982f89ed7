//! Defines environments: the names that an expression may use, and its compilation from text to a program.

mod checked;
mod inferred;
mod own;
mod release;
#[cfg(test)]
mod tests;

pub use self::checked::{Checked, SizeHints};
pub use self::inferred::Inferred;

use std::sync::{Arc, Mutex, PoisonError};

use self::checked::CheckedInner;
use crate::check::{self, CheckedAst};
use crate::diagnostic::CompileError;
use crate::library::{Extra, Functions, Offer, Version};
use crate::plan::{Options, PatternSum, Program, ProgramError};
use crate::source::Source;
use crate::syntax::{self, macros};
use crate::types::Type;

/// Which set of libraries an environment offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// New expressions: what the compatibility version allows.
    #[default]
    New,
    /// Stored expressions: everything that any supported version ever allowed.
    Stored,
}

/// Which revision of the language, where they differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    /// cel-go 0.26 with optimisation, as Kubernetes 1.36 runs it.
    Kubernetes,
    /// The current version of the CEL specification's conformance suite.
    Current,
}

/// What an expression may name. Cheap to clone.
///
/// ```
/// use admit_cel::{Env, Extra, Mode, PatternSum, Type, Version};
///
/// let env = Env::kubernetes(Version(1, 36), Mode::New)
///     .with_variable("object", Type::Dyn)
///     .with_variables([("oldObject", Type::Dyn), ("params", Type::Dyn)]);
/// assert_eq!((env.version(), env.mode()), (Version(1, 36), Mode::New));
/// assert_eq!(env.variables().collect::<Vec<_>>(), ["object", "oldObject", "params"]);
/// assert!(env.functions().any(|name| name == "quantity"));
/// assert!(env.overloads().any(|row| row.id == "string_to_quantity"));
/// assert_eq!(env.parse_type("list(int)").map(|ty| ty.to_string()).as_deref(), Some("list(int)"));
///
/// let checked = env.compile("object.spec.replicas <= params.most")?;
/// assert_eq!(checked.output_type(), &Type::Bool);
/// // What cannot be so is told before anything runs; unchecked, it is an error of the evaluation.
/// assert!(env.compile("size(1) > 0").is_err());
/// assert!(env.compile_unchecked("size(1) > 0").is_ok());
///
/// // The same, and more: each returns another environment.
/// assert!(env.compile("[1, 'a']").is_err() && env.with_mixed_literals().compile("[1, 'a']").is_ok());
/// assert!(env.with_library(Extra::Math).compile("math.least(1, 2)").is_ok());
/// assert!(env.with_declared_scalars().compile("duration == duration").is_ok());
/// assert!(env.with_patch_types().compile("Object{spec: Object.spec{replicas: 3}}").is_ok());
/// let com = Env::kubernetes(Version(1, 36), Mode::New).with_variable("com.example.x", Type::Int);
/// assert!(com.compile("x").is_err() && com.with_container("com.example").compile("x").is_ok());
///
/// // Constant patterns of several programs share room; and a call on constants is made ahead, or each time.
/// let mut patterns = PatternSum::default();
/// env.program_among(&env.compile("'a'.matches('^a+$')")?, &mut patterns)?;
/// assert_eq!(patterns.count(), 1);
/// let broken = env.compile("int('x') > 0")?;
/// assert!(env.program(&broken).is_err() && env.without_folding().program(&broken).is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Env {
    inner: Arc<Inner>,
}

#[derive(Clone, Debug)]
struct Inner {
    version: Version,
    mode: Mode,
    /// What [`syntax::parse`] accepts here.
    syntax: Arc<syntax::Options>,
    functions: Arc<Functions>,
    /// List and map literals may hold several types.
    mixed_literals: bool,
    /// Constants are folded before evaluation.
    folds: bool,
    /// Scalar types have a second name for the checker.
    declared_scalars: bool,
    /// Whether expressions may create the objects of mutations.
    patch_types: bool,
    language: Language,
    /// The offered functions, and the release whose syntax and checks apply.
    offer: Offer,
    /// The namespace that short names are looked up in.
    container: Arc<str>,
    /// The variables in order of declaration, which numbers the slots of every program of this environment.
    variables: Arc<[(Box<str>, Type)]>,
    /// The types that signatures may name beyond the language's, with the number of their parameters.
    types: Arc<[(Box<str>, usize)]>,
}

/// The newest release whose libraries are known; stored expressions may use all of them.
const NEWEST: Version = Version(1, 36);
/// Releases that brought syntax and checks (apiserver `pkg/cel/environment/base.go`).
const OPTIONALS: Version = Version(1, 28);
const LITERALS_CHECKED: Version = Version(1, 29);
/// From this version on, reserved words are accepted as field names (apiserver `pkg/cel/environment/environment.go`).
const KEYWORD_FIELDS: Version = Version(1, 31);
const TWO_VARIABLES: Version = Version(1, 32);
const LISTS: Version = Version(1, 34);

/// The macros that Kubernetes' environments have, each with the first version that has it.
///
/// ```
/// let offers: Vec<_> = admit_cel::macro_offers().filter(|(_, found)| found.name == "transformList").collect();
/// assert!(offers.iter().all(|(since, found)| *since == admit_cel::Version(1, 32) && found.doc.starts_with("list.")));
/// ```
pub fn macro_offers() -> impl Iterator<Item = (Version, &'static macros::Macro)> {
    let sets = [
        (Version(1, 0), macros::STANDARD),
        (OPTIONALS, macros::OPTIONAL),
        (TWO_VARIABLES, macros::TWO_VARIABLE),
        (LISTS, macros::LISTS),
    ];
    sets.into_iter().flat_map(|(since, set)| set.iter().map(move |found| (since, found)))
}

fn syntax_options(version: Version) -> syntax::Options {
    syntax::Options {
        optional_syntax: version >= OPTIONALS,
        escaped_identifiers: false,
        macros: macro_offers().filter(|(since, _)| *since <= version).map(|(_, found)| found).collect(),
    }
}

/// The functions of a release. Reading every signature takes longer than compiling most expressions, so that the sets
/// of a few releases are kept.
fn functions_of(offer: Offer) -> Arc<Functions> {
    static KEPT: Mutex<Vec<(Offer, Arc<Functions>)>> = Mutex::new(Vec::new());
    const MOST: usize = 64;
    // A set is completed before it is stored, so that a panic elsewhere leaves nothing half-built.
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, functions)) = kept.iter().find(|(known, _)| *known == offer) {
        return Arc::clone(functions);
    }
    let functions = Arc::new(Functions::kubernetes(offer));
    if kept.len() < MOST {
        kept.push((offer, Arc::clone(&functions)));
    }
    functions
}

impl Env {
    /// The environment of a Kubernetes release, without variables.
    #[must_use]
    pub fn kubernetes(version: Version, mode: Mode) -> Self {
        let release = version.max(NEWEST);
        let compatible = match mode {
            Mode::New => version,
            Mode::Stored => release,
        };
        Self::offering(version, mode, Offer { compatible, release, books: true })
    }

    fn offering(version: Version, mode: Mode, offer: Offer) -> Self {
        let functions = functions_of(offer);
        let syntax = Arc::new(syntax_options(offer.compatible));
        Self {
            inner: Arc::new(Inner {
                version,
                mode,
                syntax,
                functions,
                mixed_literals: false,
                folds: true,
                declared_scalars: false,
                patch_types: false,
                language: Language::Kubernetes,
                offer,
                container: "".into(),
                variables: Arc::new([]),
                types: Arc::new([]),
            }),
        }
    }

    /// The language itself as its suite has it today, with cel-go's extension libraries and none of Kubernetes' own:
    /// strings, lists, sets, optional values, comprehensions of two variables, `cel.bind`, math, encoders, addresses
    /// and networks. Literals may be mixed, fields quoted in backticks, and nothing is folded before evaluation.
    ///
    /// ```
    /// use admit_cel::{Bindings, Env, Evaluation, Value};
    ///
    /// let env = Env::standard();
    /// let program = env.program(&env.compile("cel.bind(x, [1, 'a'], math.least(x.size(), 7))")?)?;
    /// let arena = bumpalo::Bump::new();
    /// let value = program.eval(&Bindings::new(&program), &mut Evaluation::new(&arena))?;
    /// assert!(matches!(value, Value::Int(2)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn standard() -> Self {
        let mut syntax = syntax_options(NEWEST);
        syntax.escaped_identifiers = true;
        syntax.macros.extend([macros::BIND, macros::BLOCK, macros::MATH].into_iter().flatten());
        Self {
            inner: Arc::new(Inner {
                version: NEWEST,
                mode: Mode::New,
                syntax: Arc::new(syntax),
                functions: Arc::new(Functions::standard()),
                mixed_literals: true,
                folds: false,
                declared_scalars: false,
                patch_types: false,
                language: Language::Current,
                offer: Offer { compatible: NEWEST, release: NEWEST, books: true },
                container: "".into(),
                variables: Arc::new([]),
                types: Arc::new([]),
            }),
        }
    }

    /// The same with a library that the release's environments leave out.
    #[must_use]
    pub fn with_library(&self, library: Extra) -> Self {
        let functions = Arc::new((*self.inner.functions).clone().with(library));
        let mut syntax = (*self.inner.syntax).clone();
        syntax.macros.extend(match library {
            Extra::JsonPatch | Extra::Encoders => &[],
            Extra::Bindings => macros::BIND,
            Extra::Math => macros::MATH,
        });
        let syntax = Arc::new(syntax);
        Self { inner: Arc::new(Inner { functions, syntax, ..(*self.inner).clone() }) }
    }

    /// Returns the environment with names looked up in a namespace first: `y` may then mean `com.example.y`.
    #[must_use]
    pub fn with_container(&self, name: &str) -> Self {
        Self { inner: Arc::new(Inner { container: name.into(), ..(*self.inner).clone() }) }
    }

    /// The same with list and map literals of several types, which Kubernetes refuses; constant patterns, times and
    /// durations are then not looked at before the program is planned.
    #[must_use]
    pub fn with_mixed_literals(&self) -> Self {
        Self { inner: Arc::new(Inner { mixed_literals: true, ..(*self.inner).clone() }) }
    }

    /// Returns the environment with `duration` and `timestamp` as names of types, too, as beside types that Kubernetes declares: for
    /// the checker only, so that a program using such a type cannot be compiled.
    #[must_use]
    pub fn with_declared_scalars(&self) -> Self {
        Self { inner: Arc::new(Inner { declared_scalars: true, ..(*self.inner).clone() }) }
    }

    /// Returns the environment with the objects of mutations: `Object{}` with any fields, `Object.spec{}` and the like for its parts,
    /// and `JSONPatch{}`.
    #[must_use]
    pub fn with_patch_types(&self) -> Self {
        Self { inner: Arc::new(Inner { patch_types: true, ..(*self.inner).clone() }) }
    }

    /// The same with programs that evaluate the calls on constants each time, and pay for them each time, where
    /// Kubernetes evaluates some of them ahead. No value is another, and what would be an error of the program is one of
    /// the evaluation.
    #[must_use]
    pub fn without_folding(&self) -> Self {
        Self { inner: Arc::new(Inner { folds: false, ..(*self.inner).clone() }) }
    }

    /// The same with one more variable; a variable of that name is replaced.
    #[must_use]
    pub fn with_variable(&self, name: &str, ty: Type) -> Self {
        self.with_variables([(name, ty)])
    }

    /// Returns the environment with more variables; earlier ones of the same names are replaced. The slots of the others stay, so that
    /// bindings made for the larger environment fit programs of the smaller one.
    #[must_use]
    pub fn with_variables<'n>(&self, variables: impl IntoIterator<Item = (&'n str, Type)>) -> Self {
        let mut all = self.inner.variables.to_vec();
        for (name, ty) in variables {
            match all.iter_mut().find(|(known, _)| **known == *name) {
                Some(known) => known.1 = ty,
                None => all.push((name.into(), ty)),
            }
        }
        Self { inner: Arc::new(Inner { variables: all.into(), ..(*self.inner).clone() }) }
    }

    /// The release whose libraries are offered.
    #[must_use]
    pub fn version(&self) -> Version {
        self.inner.version
    }

    /// Which set of the release's libraries is offered.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.inner.mode
    }

    /// The names of the variables, in the order of their declaration.
    pub fn variables(&self) -> impl ExactSizeIterator<Item = &str> {
        self.inner.variables.iter().map(|(name, _)| &**name)
    }

    /// The names of the functions that expressions may call, in no order.
    pub fn functions(&self) -> impl Iterator<Item = &'static str> {
        self.inner.functions.names()
    }

    /// Parses and checks an expression.
    ///
    /// # Errors
    ///
    /// Every finding of the parser or the checker, drawn as cel-go draws it.
    pub fn compile(&self, text: &str) -> Result<Checked, CompileError> {
        let source = Source::new(text);
        let ast = syntax::parse(&source, &self.inner.syntax)?;
        let ast = check::check(&source, ast, &self.environment())?;
        Ok(self.checked(ast))
    }

    fn checked(&self, ast: CheckedAst) -> Checked {
        Checked { inner: Arc::new(CheckedInner { ast, release: self.inner.offer.release }) }
    }

    /// Parses an expression and leaves it unchecked: unknown names, functions and mismatched types are errors of the
    /// evaluation, and only of what is evaluated. Its type is `dyn`, and its estimate says nothing.
    ///
    /// # Errors
    ///
    /// Every finding of the parser, drawn as cel-go draws it.
    pub fn compile_unchecked(&self, text: &str) -> Result<Checked, CompileError> {
        let ast = syntax::parse(&Source::new(text), &self.inner.syntax)?;
        let ast = check::unchecked(ast, &self.environment());
        Ok(self.checked(ast))
    }

    fn environment(&self) -> check::Environment<'_> {
        check::Environment {
            functions: &self.inner.functions,
            variables: &self.inner.variables,
            container: &self.inner.container,
            homogeneous_literals: !self.inner.mixed_literals,
            checked_literals: self.inner.offer.compatible >= LITERALS_CHECKED && !self.inner.mixed_literals,
            locals_first: self.inner.language == Language::Current,
            declared_scalars: self.inner.declared_scalars,
            patch_types: self.inner.patch_types,
            keyword_fields: self.inner.offer.compatible >= KEYWORD_FIELDS,
            version: self.inner.offer.compatible,
        }
    }

    /// Resolves names, folds constants, compiles constant regular expressions.
    ///
    /// # Errors
    ///
    /// When a constant part can have no value (`int('x')`), in the words of kube-apiserver.
    pub fn program(&self, checked: &Checked) -> Result<Program, ProgramError> {
        self.program_among(checked, &mut PatternSum::default())
    }

    /// The same with the constant patterns of other programs, which count together: those of a policy, or of a definition.
    ///
    /// # Errors
    ///
    /// As [`program`](Self::program), and when there is no room for a pattern.
    pub fn program_among(
        &self,
        checked: &Checked,
        patterns: &mut PatternSum,
    ) -> Result<Program, ProgramError> {
        let is_strict = self.inner.language == Language::Current;
        let options = Options { folds: self.inner.folds, is_strict, ..Options::default() };
        self.plan(checked, options, patterns)
    }

    pub(crate) fn plan(
        &self,
        checked: &Checked,
        options: Options,
        patterns: &mut PatternSum,
    ) -> Result<Program, ProgramError> {
        let variables = self.inner.variables.iter().map(|(name, _)| name.clone()).collect();
        Program::plan(&checked.inner.ast, variables, &self.inner.functions, options, patterns)
    }
}
