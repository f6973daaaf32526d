// The file that `apps` names: the apps, the entitlements of their products, and how long non-renewing products last.

import Contract
import JSON
import Platform
import Settings

struct AppsFile {
    /// More apps than any developer account has, so that the file stays small.
    static let limitApps = 1000
    /// Apple's limit for a product id is 255 characters.
    static let limitNameBytes = 255

    private(set) var apps: [App] = []
    private(set) var faults: [SettingFault] = []
    private let path: String

    init(path: String) {
        self.path = path
        do throws(FileFault) {
            decode(try readFile(path, limitBytes: JSONLimits().bytes))
        } catch {
            faults.append(SettingFault(place: "apps", "\(error)"))
        }
    }

    init(path: String, bytes: [UInt8]) {
        self.path = path
        decode(bytes)
    }

    private mutating func decode(_ bytes: [UInt8]) {
        let document: JSONValue
        do throws(JSONFault) {
            document = try JSONValue.read(bytes)
        } catch {
            return faults.append(SettingFault(place: path, "\(error)"))
        }
        guard let list = document.array, (1...Self.limitApps).contains(list.count) else {
            return refuse(
                "", "must be an array of 1 to \(Self.limitApps) apps: [{\"bundleId\": \"com.example.app\", …}]")
        }
        for (index, element) in list.enumerated() {
            guard let app = app(element, at: "[\(index)]") else { continue }
            if apps.contains(where: { $0.bundleId == app.bundleId }) {
                refuse("[\(index)].bundleId", "\(quoted(app.bundleId)) already has an entry; keep one of the two")
            } else {
                apps.append(app)
            }
        }
    }

    private mutating func app(_ value: JSONValue, at place: String) -> App? {
        guard let object = value.object else {
            refuse(place, "must be an object, not \(value.kindInWords)")
            return nil
        }
        let known = ["bundleId", "appAppleId", "entitlements", "periods"]
        for member in object.members where !known.contains(member.name) {
            let nearest = nearestName(to: member.name, among: known).map { "the nearest is \($0)" }
            let all = "there are \(known.joined(separator: ", "))"
            refuse(place, "no member is called \(quoted(member.name)); \(nearest ?? all)")
        }
        let appAppleId = appAppleId(object["appAppleId"], at: place + ".appAppleId")
        let entitlements = entitlements(object["entitlements"], at: place + ".entitlements")
        let periods = periods(object["periods"], at: place + ".periods")
        guard let bundleId = object["bundleId"]?.string, isName(bundleId) else {
            refuse(place + ".bundleId", "must be the bundle id of the app, such as \"com.example.app\"")
            return nil
        }
        return App(bundleId: bundleId, appAppleId: appAppleId, entitlements: entitlements, periods: periods)
    }

    private mutating func appAppleId(_ value: JSONValue?, at place: String) -> Int64? {
        guard let value, value != .null else { return nil }
        guard let id = value.integer, id > 0 else {
            refuse(place, "must be the number that App Store Connect calls Apple ID, without quotation marks")
            return nil
        }
        return id
    }

    private mutating func entitlements(_ value: JSONValue?, at place: String) -> [App.Entitlement] {
        var entitlements: [App.Entitlement] = []
        for member in members(value, at: place, example: "{\"premium\": [\"pro.monthly\"]}") {
            let products = member.value.array?.compactMap(\.string) ?? []
            if let list = member.value.array, list.count == products.count, products.allSatisfy(isName),
                Set(products.map { Array($0.utf8) }).count == products.count
            {
                entitlements.append(App.Entitlement(name: member.name, productIds: products))
            } else {
                refuse("\(place).\(member.name)", "must be an array of product ids, each once: [\"pro.monthly\"]")
            }
        }
        return entitlements
    }

    private mutating func periods(_ value: JSONValue?, at place: String) -> [App.ProductPeriod] {
        var periods: [App.ProductPeriod] = []
        for member in members(value, at: place, example: "{\"pass.30\": \"P30D\"}") {
            if let period = member.value.string.flatMap(Period.init) {
                periods.append(App.ProductPeriod(productId: member.name, period: period))
            } else {
                refuse(
                    "\(place).\(member.name)",
                    "must be a length such as \"P30D\", \"P6M\" or \"P1Y\", at most a century")
            }
        }
        return periods
    }

    /// The members of an optional object, without those with invalid names.
    private mutating func members(_ value: JSONValue?, at place: String, example: String) -> [JSONObject.Member] {
        guard let value, value != .null else { return [] }
        guard let object = value.object else {
            refuse(place, "must be an object such as \(example), not \(value.kindInWords)")
            return []
        }
        return object.members.filter { member in
            if isName(member.name) { return true }
            refuse(place, "\(quoted(member.name)) must have 1 to \(Self.limitNameBytes) bytes, no control characters")
            return false
        }
    }

    private func isName(_ text: String) -> Bool {
        (1...Self.limitNameBytes).contains(text.utf8.count) && text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f }
    }

    private mutating func refuse(_ place: String, _ words: String) {
        faults.append(SettingFault(place: place.isEmpty ? path : "\(path) \(place)", words))
    }
}
