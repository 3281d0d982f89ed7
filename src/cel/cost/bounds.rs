//! Implements arithmetic of costs and sizes: pairs of a minimum and a maximum that saturate, as in cel-go's `checker/cost.go`.

/// Bounds of a cost or a size; arithmetic on both ends saturates.
///
/// ```
/// use admit_cel::Bounds;
///
/// let items = Bounds::new(0, 10);
/// assert_eq!(items.times(Bounds::exactly(3)).plus(Bounds::ONE), Bounds::new(1, 31));
/// assert_eq!(Bounds::new(1, 31).scaled(0.1), Bounds::new(1, 4));
/// assert_eq!(Bounds::exactly(2).union(Bounds::exactly(7)), Bounds::new(2, 7));
/// assert_eq!(Bounds::UNBOUNDED.plus(Bounds::ONE).max, u64::MAX);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The least value.
    pub min: u64,
    /// The greatest value.
    pub max: u64,
}

impl Bounds {
    /// Zero.
    pub const ZERO: Self = Self { min: 0, max: 0 };
    /// One unit.
    pub const ONE: Self = Self { min: 1, max: 1 };
    /// No limit.
    pub const UNBOUNDED: Self = Self { min: 0, max: u64::MAX };
    /// The neutral element of [`Self::union`].
    pub const NONE: Self = Self { min: u64::MAX, max: 0 };

    /// Creates a range from a minimum to a maximum.
    #[must_use]
    pub const fn new(min: u64, max: u64) -> Self {
        Self { min, max }
    }

    /// Creates a range of one value.
    #[must_use]
    pub const fn exactly(n: u64) -> Self {
        Self { min: n, max: n }
    }

    /// The sum.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    /// The product.
    #[must_use]
    pub const fn times(self, other: Self) -> Self {
        Self { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    /// Both ends times a factor, rounded up: the cost of traversing a string is a tenth of its size.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self { min: scale(self.min, factor), max: scale(self.max, factor) }
    }

    /// The narrowest bounds that hold both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

/// Cost of looking at one character or byte (cel-go `common/cost.go`).
pub(crate) const STRING_TRAVERSAL: f64 = 0.1;

/// Cost of one character of a regular expression, per character of the subject (same file).
pub(crate) const REGEX_LENGTH: f64 = 0.25;

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "`as` from a float saturates, and cel-go loses the same digits on the way"
)]
pub(crate) fn scale(n: u64, factor: f64) -> u64 {
    // Rounds up as `ceil` does, which without SSE 4.1 is a call of the C library.
    let exact = n as f64 * factor;
    let whole = exact as u64;
    if (whole as f64) < exact { whole.saturating_add(1) } else { whole }
}
