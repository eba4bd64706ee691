//! Variable-length integers (LEB128: seven bits per byte, lowest first, the top bit set if more
//! follow), and checked reads of untrusted bytes.

/// The reason why bytes are invalid.
pub(super) type Wrong = &'static str;

pub(super) fn put(out: &mut Vec<u8>, mut n: u64) {
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
pub(super) const fn zigzag(n: u64) -> u64 {
    (n << 1) ^ (n.cast_signed() >> 63).cast_unsigned()
}

/// Reverses [`zigzag`].
#[inline]
pub(super) const fn unzigzag(n: u64) -> u64 {
    (n >> 1) ^ (n & 1).wrapping_neg()
}

/// Unread bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Input<'a>(pub(super) &'a [u8]);

impl<'a> Input<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn take(&mut self, n: usize) -> Result<&'a [u8], Wrong> {
        let (taken, rest) = self.0.split_at_checked(n).ok_or("it ends too early")?;
        self.0 = rest;
        Ok(taken)
    }

    #[inline]
    pub(super) fn byte(&mut self) -> Result<u8, Wrong> {
        let (first, rest) = self.0.split_first().ok_or("it ends too early")?;
        self.0 = rest;
        Ok(*first)
    }

    #[inline]
    pub(super) fn number(&mut self) -> Result<u64, Wrong> {
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

    pub(super) fn length(&mut self) -> Result<usize, Wrong> {
        usize::try_from(self.number()?).map_err(|_| "a length is too large")
    }

    pub(super) fn u32(&mut self) -> Result<u32, Wrong> {
        let bytes = self.take(4)?;
        Ok(u32::from_le_bytes(bytes.try_into().map_err(|_| "it ends too early")?))
    }

    pub(super) fn u64(&mut self) -> Result<u64, Wrong> {
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
        fn every_number_is_read_unchanged(n: u64) {
            let mut out = Vec::new();
            put(&mut out, n);
            let mut input = Input(&out);
            prop_assert_eq!(input.number(), Ok(n));
            prop_assert!(input.is_empty());
            prop_assert_eq!(unzigzag(zigzag(n)), n);
        }
    }
}
