// A queue whose first element is always the smallest.

/// A binary heap. The order of equal elements is not defined, so elements need a total order.
struct Heap<Element: Comparable> {
    private var elements: [Element] = []

    var count: Int { elements.count }
    var first: Element? { elements.first }

    mutating func insert(_ element: Element) {
        elements.append(element)
        var child = elements.count - 1
        while child > 0, elements[child] < elements[(child - 1) / 2] {
            elements.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    mutating func popFirst() -> Element? {
        guard let last = elements.popLast() else { return nil }
        guard let first = elements.first else { return last }
        elements[0] = last
        var parent = 0
        while 2 * parent + 1 < elements.count {
            var least = 2 * parent + 1
            if least + 1 < elements.count, elements[least + 1] < elements[least] { least += 1 }
            guard elements[least] < elements[parent] else { break }
            elements.swapAt(parent, least)
            parent = least
        }
        return first
    }
}
