import Foundation
import Platform
import Testing

@Suite struct `A card` {
    @Test(arguments: Story.all)
    func `is what people are shown`(story: Story) throws {
        let desk = try InspectDesk()
        try story.tells(desk)
        try desk.wait(until: story.asked)
        let answer = try desk.inspect(story.asks)
        #expect(answer.code == .done)
        #expect(answer.messages.isEmpty)
        let file = try #require(
            Bundle.module.url(forResource: story.name, withExtension: "txt", subdirectory: "Cards"),
            "no card \(story.name).txt; it would be:\n\(answer.lines)")
        #expect(answer.lines + "\n" == (try String(contentsOf: file, encoding: .utf8)), "it is:\n\(answer.lines)")
    }

    @Test(arguments: Story.all)
    func `fits into eighty columns`(story: Story) throws {
        let desk = try InspectDesk()
        try story.tells(desk)
        try desk.wait(until: story.asked)
        let lines = try desk.inspect(story.asks + ["--all"]).lines.split(
            separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.count > 5)
        for line in lines { #expect(line.count <= 80 && line.last != " ", "\(line)") }
    }
}
