//! Builds the environments of Kubernetes releases, and lists what they offer.

use std::sync::Arc;

use crate::library::{Offer, Overload, Version};

use super::{Env, Inner, Mode, functions_of};

impl Env {
    /// Returns the environment of a release as it is installed, without variables. New expressions may use what the previous release
    /// supports, so that a downgrade finds nothing unknown; stored ones may use everything that the release has. Costs are those of the
    /// release, and functions that its build lacks are absent.
    ///
    /// ```
    /// use admit_cel::{Env, Mode, Version};
    ///
    /// let text = "format.dns1123Label().validate('a').hasValue()";
    /// let compiles = |minor, mode| Env::of_release(Version(1, minor), mode).compile(text).is_ok();
    /// assert!(!compiles(31, Mode::New) && compiles(31, Mode::Stored) && compiles(32, Mode::New));
    /// ```
    #[must_use]
    pub fn of_release(release: Version, mode: Mode) -> Self {
        let compatible = match mode {
            Mode::New => Version(release.0, release.1.saturating_sub(1)),
            Mode::Stored => release,
        };
        Self::offering(compatible, mode, Offer { compatible, release, books: true })
    }

    /// The overloads of the functions that expressions may call, in no order.
    pub fn overloads(&self) -> impl Iterator<Item = &'static Overload> {
        self.inner.functions.rows()
    }

    /// Returns the environment with the cost counter of policies and match conditions before 1.32, which ignores Kubernetes' own cost
    /// functions: a call of one of its libraries, or of cel-go's strings, costs one (apiserver `pkg/features/kube_features.go`,
    /// `StrictCostEnforcementForVAP`, `StrictCostEnforcementForWebhooks`).
    ///
    /// ```
    /// use admit_cel::{Bindings, Env, Evaluation, Mode, Type, Value, Version};
    ///
    /// let env = Env::of_release(Version(1, 31), Mode::New).with_variable("x", Type::String);
    /// let cost = |env: &Env| {
    ///     let program = env.program(&env.compile("x.find('^a+')")?)?;
    ///     let (mut bindings, text) = (Bindings::new(&program), "a".repeat(1_000));
    ///     bindings.set("x", Value::String(&text));
    ///     let arena = bumpalo::Bump::new();
    ///     let mut cx = Evaluation::new(&arena);
    ///     program.eval(&bindings, &mut cx)?;
    ///     Ok::<_, Box<dyn std::error::Error>>(cx.cost())
    /// };
    /// // One for the variable, one for the call.
    /// assert_eq!(cost(&env.without_library_costs())?, 2);
    /// assert!(cost(&env)? > 100);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn without_library_costs(&self) -> Self {
        let offer = Offer { books: false, ..self.inner.offer };
        Self { inner: Arc::new(Inner { functions: functions_of(offer), offer, ..(*self.inner).clone() }) }
    }
}
