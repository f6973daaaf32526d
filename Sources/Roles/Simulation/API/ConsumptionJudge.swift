// The endpoints of the simulated App Store Server API that accept consumption information.

public import Contract

/// As strict as Apple's documents allow. What they call wrong is rejected with the error code that they give. What they
/// do not mention (unknown members, strings where numbers belong) is a general bad request. Pure; callable from any
/// thread.
public struct ConsumptionJudge: Sendable {
    public typealias Find = @Sendable (_ id: String) -> FoundTransaction?

    private static let endpoints: [(path: String, version: APIVerdict.Version)] = [
        ("/inApps/v1/transactions/consumption/", .v1), ("/inApps/v2/transactions/consumption/", .v2),
    ]
    /// Apple's ids have 15 to 18 digits and are 64-bit numbers.
    private static let maxIdDigits = 19

    private let tokens: APITokenCheck
    private let environments: Set<Contract.Environment>
    private let find: Find

    /// - Parameters:
    ///   - bundleIds: the apps of the account; a token is for one of them.
    ///   - environments: the environments whose transactions are known. Others are not found, as behind Apple's two
    ///     hosts.
    public init(
        key: SimulatedAPIKey, bundleIds: [String],
        environments: Set<Contract.Environment> = [.production, .sandbox], find: @escaping Find
    ) {
        tokens = APITokenCheck(key: key, bundleIds: bundleIds)
        self.environments = environments
        self.find = find
    }

    /// - Parameter now: milliseconds since 1970, to check whether the token is valid.
    public func verdict(on request: APIRequest, now: Int64) -> APIVerdict {
        guard let endpoint = Self.endpoints.first(where: { request.path.utf8.starts(with: $0.path.utf8) }) else {
            return APIVerdict(status: 404, message: "There is no such path.")
        }
        let id = String(decoding: request.path.utf8.dropFirst(endpoint.path.utf8.count), as: UTF8.self)
        var verdict = judge(request, id: id, endpoint.version, now: now)
        verdict.version = endpoint.version
        verdict.transactionId = id
        return verdict
    }

    private func judge(_ request: APIRequest, id: String, _ version: APIVerdict.Version, now: Int64) -> APIVerdict {
        guard !id.isEmpty, !id.utf8.contains(UInt8(ascii: "/")) else {
            return APIVerdict(status: 404, message: "There is no such path.")
        }
        guard request.method == "PUT" else {
            var verdict = APIVerdict(status: 405, message: "Only PUT is supported.")
            verdict.allow = "PUT"
            return verdict
        }
        let bundleId: String
        do throws(APITokenCheck.Refusal) {
            bundleId = try tokens.bundleId(of: request, now: now)
        } catch {
            return APIVerdict(status: 401, message: error.words)
        }
        var verdict = APIVerdict(status: 202, message: "Accepted.")
        do throws(ConsumptionFault) {
            guard Self.isJSON(request) else {
                throw ConsumptionFault(415, nil, "Content-Type is not application/json.")
            }
            let transaction = try transaction(id, of: bundleId, version)
            verdict.answer =
                switch version {
                case .v1: try ConsumptionBodyV1.answer(of: request.body)
                case .v2: try ConsumptionBody.answer(of: request.body, on: transaction)
                }
        } catch {
            verdict = APIVerdict(status: error.status, errorCode: error.code, message: error.words)
        }
        verdict.bundleId = bundleId
        return verdict
    }

    private static func isJSON(_ request: APIRequest) -> Bool {
        let types = request.values(of: "Content-Type")
        guard types.count == 1, let type = types[0].split(separator: ";", omittingEmptySubsequences: false).first
        else { return false }
        return type.split(separator: " ").joined().lowercased() == "application/json"
    }

    private func transaction(
        _ id: String, of bundleId: String, _ version: APIVerdict.Version
    ) throws(ConsumptionFault) -> KnownTransaction {
        guard (1...Self.maxIdDigits).contains(id.utf8.count), id.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            throw ConsumptionFault(4_000_006, "Invalid transaction id.")
        }
        switch find(id) {
        case .appTransaction:
            throw ConsumptionFault(4_000_048, "An appTransactionId is not supported by this endpoint.")
        case .transaction(let transaction)
        where transaction.bundleId == bundleId && environments.contains(transaction.environment):
            if transaction.isFamilyShared {
                throw ConsumptionFault(4_000_185, "A family transaction is not supported.")
            }
            if transaction.isAdvancedCommerce, version == .v2 {
                throw ConsumptionFault(4_000_000, "An Advanced Commerce transaction is not supported: use version 1.")
            }
            return transaction
        // For another app or environment Apple answers as for an id that never existed.
        case .transaction, nil: throw ConsumptionFault(4_040_010, "Transaction id not found.")
        }
    }
}

/// Why a request is rejected: the first three digits of Apple's error code are the status.
struct ConsumptionFault: Error {
    let status: Int
    let code: Int?
    let words: String

    init(_ code: Int, _ words: String) { self.init(code / 10_000, code, words) }

    init(_ status: Int, _ code: Int?, _ words: String) {
        self.status = status
        self.code = code
        self.words = words
    }

    static func general(_ words: String) -> ConsumptionFault { ConsumptionFault(4_000_000, words) }
}
