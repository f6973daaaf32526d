// Our words for Apple's types of offers.

public enum OfferType {
    public static let introductory: Int64 = 1

    /// The words for the numbers from 1.
    public static let words = ["introductory", "promotional", "code", "win_back"]

    /// An unknown number is written as it is.
    public static func word(of type: Int64) -> String {
        (1...Int64(words.count)).contains(type) ? words[Int(type) - 1] : String(type)
    }

    /// The reverse; nil: the word stands for no number.
    public static func type(of word: String) -> Int64? {
        words.firstIndex(of: word).map { Int64($0) + 1 } ?? Int64(word)
    }
}
