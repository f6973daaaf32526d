// Random moments for kills, and how many kills there are.

import Glibc

/// Random moments and victims of one run. The seed is printed. `PERENNIAL_TEST_SEED` repeats the run, as far as that is possible
/// with processes.
struct Dice: RandomNumberGenerator {
    private var state: UInt64

    init() {
        let given = getenv("PERENNIAL_TEST_SEED").flatMap { UInt64(String(cString: $0)) }
        state = given ?? UInt64.random(in: 1...999_999)
        print("repeat with PERENNIAL_TEST_SEED=\(state)")
    }

    /// splitmix64.
    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ mixed >> 27) &* 0x94d0_49bb_1331_11eb
        return mixed ^ mixed >> 31
    }
}

/// Eight in `make test`; `PERENNIAL_TEST_KILL_ROUNDS` sets another number.
var killRounds: Int {
    guard let text = getenv("PERENNIAL_TEST_KILL_ROUNDS"), let rounds = Int(String(cString: text)), rounds > 0 else {
        return 8
    }
    return rounds
}
