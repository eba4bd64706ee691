//! Numbers of file formats: variable-length integers (LEB128: seven bits per byte, lowest first, the
//! top bit set if more follow), checked reads of untrusted bytes, and the common divisor of a column.

#![forbid(unsafe_code)]

/// The reason why bytes are invalid.
pub type Wrong = &'static str;

/// Appends a number.
#[inline]
pub fn put(out: &mut Vec<u8>, mut n: u64) {
    loop {
        let [low, ..] = n.to_le_bytes();
        n >>= 7;
        if n == 0 {
            out.push(low & 0x7f);
            return;
        }
        out.push(low | 0x80);
    }
}

/// Returns a number that is small if `n` is near zero: 0, -1, 1, -2 become 0, 1, 2, 3.
#[inline]
#[must_use]
pub const fn zigzag(n: u64) -> u64 {
    (n << 1) ^ (n.cast_signed() >> 63).cast_unsigned()
}

/// Reverses [`zigzag`].
#[inline]
#[must_use]
pub const fn unzigzag(n: u64) -> u64 {
    (n >> 1) ^ (n & 1).wrapping_neg()
}

/// Appends an integer, so that small magnitudes of either sign are short.
pub fn put_signed(out: &mut Vec<u8>, n: i64) {
    put(out, zigzag(n.cast_unsigned()));
}

/// Returns the greatest common divisor; 1 if all are zero.
#[must_use]
pub fn divisor(numbers: impl Iterator<Item = u64>) -> u64 {
    let mut divisor = 0;
    for n in numbers {
        divisor = gcd(divisor, n);
        // The divisor cannot get smaller.
        if divisor == 1 {
            break;
        }
    }
    divisor.max(1)
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Unread bytes.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    /// Returns whether all is read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads this many bytes.
    ///
    /// # Errors
    ///
    /// [`Wrong`] if fewer are left.
    pub fn take(&mut self, n: usize) -> Result<&'a [u8], Wrong> {
        let (taken, rest) = self.0.split_at_checked(n).ok_or("it ends too early")?;
        self.0 = rest;
        Ok(taken)
    }

    /// Reads a byte.
    ///
    /// # Errors
    ///
    /// [`Wrong`] if none is left.
    #[inline]
    pub fn byte(&mut self) -> Result<u8, Wrong> {
        let (first, rest) = self.0.split_first().ok_or("it ends too early")?;
        self.0 = rest;
        Ok(*first)
    }

    /// Reads a variable-length number.
    ///
    /// # Errors
    ///
    /// [`Wrong`] if it ends too early or has more than 64 bits.
    #[inline]
    pub fn number(&mut self) -> Result<u64, Wrong> {
        let first = self.byte()?;
        if first & 0x80 == 0 {
            return Ok(u64::from(first));
        }
        let mut n = u64::from(first & 0x7f);
        for shift in (7..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            n |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(n);
            }
        }
        Err("a number has more than 64 bits")
    }

    /// Reads an integer of [`put_signed`].
    ///
    /// # Errors
    ///
    /// [`Wrong`] as for [`number`](Self::number).
    pub fn signed(&mut self) -> Result<i64, Wrong> {
        self.number().map(|n| unzigzag(n).cast_signed())
    }

    /// Reads a length.
    ///
    /// # Errors
    ///
    /// [`Wrong`] if it is no length of this machine.
    pub fn length(&mut self) -> Result<usize, Wrong> {
        usize::try_from(self.number()?).map_err(|_| "a length is too large")
    }

    /// Reads four bytes, the lowest first.
    ///
    /// # Errors
    ///
    /// [`Wrong`] if fewer are left.
    pub fn u32(&mut self) -> Result<u32, Wrong> {
        let bytes = self.take(4)?;
        Ok(u32::from_le_bytes(bytes.try_into().map_err(|_| "it ends too early")?))
    }

    /// Reads eight bytes, the lowest first.
    ///
    /// # Errors
    ///
    /// [`Wrong`] if fewer are left.
    pub fn u64(&mut self) -> Result<u64, Wrong> {
        let bytes = self.take(8)?;
        Ok(u64::from_le_bytes(bytes.try_into().map_err(|_| "it ends too early")?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_have_their_shortest_encoding() {
        let check = |n: u64, expect: &[u8]| {
            let mut out = Vec::new();
            put(&mut out, n);
            assert_eq!(out, expect, "{n}");
        };
        check(0, &[0]);
        check(127, &[0x7f]);
        check(128, &[0x80, 0x01]);
        assert!(Input(&[0xff; 10]).number().is_err() && Input(&[0x80]).number().is_err());
        assert_eq!([0, -1, 1, -2].map(|n: i64| zigzag(n.cast_unsigned())), [0, 1, 2, 3]);
    }

    proptest! {
        #[test]
        fn every_number_is_read_unchanged(n: u64, signed: i64) {
            let mut out = Vec::new();
            put(&mut out, n);
            put_signed(&mut out, signed);
            let mut input = Input(&out);
            prop_assert_eq!((input.number(), input.signed()), (Ok(n), Ok(signed)));
            prop_assert!(input.is_empty());
            prop_assert_eq!(unzigzag(zigzag(n)), n);
        }
    }
}
