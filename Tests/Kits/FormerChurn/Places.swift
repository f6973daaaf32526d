// Where the notifications about one purchase are among those of the subscription.

/// Sorted. Usually the places are consecutive, and then they need no heap memory.
struct Places: RandomAccessCollection {
    private var run: Range<Int>
    /// All places, if they are not consecutive.
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
