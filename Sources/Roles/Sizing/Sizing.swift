// What an installation needs: topics, processes, brokers. Every number follows from the description and from measured figures.

public struct Sizing: Sendable {
    public let installation: Installation
    public let figures: MeasuredFigures
    public let rates: Rates
    public let topics: [TopicSizing]
    public let processes: [ProcessSizing]
    public let brokers: BrokerSizing
    /// What each worker keeps, in bytes: the last record of each key, before it is on a disk.
    public let stateBytes: [(role: SizedRole, bytes: Double)]

    public init(of installation: Installation, by figures: MeasuredFigures = .measured) {
        self.installation = installation
        self.figures = figures
        rates = Rates(installation, figures)
        let formulas = TopicFormulas(installation: installation, figures: figures, rates: rates)
        topics = formulas.topics
        let (processes, roles) = ProcessFormulas.all(installation, figures, rates, formulas)
        self.processes = processes
        brokers = BrokerFormulas(installation: installation, figures: figures, rates: rates, processes: roles)
            .brokers(topics)
        stateBytes = SizedRole.allCases.compactMap { role in
            role.worker.map { (role, formulas.keptState(of: $0)) }
        }
    }

    /// Days and kinds of churn that the read API adds up in its memory, at most.
    public var cellsInMemory: Double {
        Double(installation.customers.kinds) * Installation.daysInYear * Double(installation.decisions.years)
    }

    /// Sums that tables end with.
    public var bytesADay: Double { topics.reduce(0) { $0 + $1.bytesADay } }
    public var keptBytes: Double { topics.reduce(0) { $0 + $1.keptBytes } }
    public var keptBytesInAllCopies: Double { topics.reduce(0) { $0 + $1.keptBytesInAllCopies } }
}
