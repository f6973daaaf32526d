// Where the notifications about one purchase are among all of a subscription's.

/// In order. Mostly they follow each other: then they need no memory of their own.
struct Places: RandomAccessCollection {
    private var run: Range<Int>
    /// All of them, when they are no run.
    private var scattered: [Int] = []

    init(_ first: Int) { run = first..<first + 1 }

    mutating func append(_ place: Int) {
        if scattered.isEmpty {
            if place == run.upperBound {
                run = run.lowerBound..<place + 1
                return
            }
            scattered = Array(run)
        }
        scattered.append(place)
    }

    var startIndex: Int { 0 }
    var endIndex: Int { scattered.isEmpty ? run.count : scattered.count }

    subscript(_ index: Int) -> Int { scattered.isEmpty ? run.lowerBound + index : scattered[index] }
}
