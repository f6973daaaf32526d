import Contract
import Settings
import Testing

@testable import Configuration

private func file(_ text: String) -> AppsFile { AppsFile(path: "apps.json", bytes: Array(text.utf8)) }

@Suite struct `The apps file` {
    @Test func `is read in full, in its order`() throws {
        let read = file(
            #"""
            [{"bundleId": "com.example.app", "appAppleId": 123,
              "entitlements": {"premium": ["pro.monthly", "pro.yearly"], "extra": []}, "periods": {"pass.30": "P30D"}},
             {"bundleId": "com.example.other", "appAppleId": null}]
            """#)
        #expect(read.faults.isEmpty)
        #expect(
            read.apps == [
                App(
                    bundleId: "com.example.app", appAppleId: 123,
                    entitlements: [
                        .init(name: "premium", productIds: ["pro.monthly", "pro.yearly"]),
                        .init(name: "extra", productIds: []),
                    ],
                    periods: [.init(productId: "pass.30", period: try #require(Period("P30D")))]),
                App(bundleId: "com.example.other", appAppleId: nil, entitlements: [], periods: []),
            ])
    }

    @Test(arguments: [
        ("", "apps.json: there is no JSON value"),
        (
            "[\n{\"bundleId\": \"a\",}]",
            "apps.json: line 2 (byte 19): a comma, a colon, a bracket or a name is missing or not allowed here"
        ),
        ("{}", "apps.json: must be an array of 1 to 1000 apps: [{\"bundleId\": \"com.example.app\", …}]"),
        ("[]", "apps.json: must be an array of 1 to 1000 apps: [{\"bundleId\": \"com.example.app\", …}]"),
        ("[1]", "apps.json [0]: must be an object, not a whole number"),
        ("[{}]", "apps.json [0].bundleId: must be the bundle id of the app, such as \"com.example.app\""),
        (
            "[{\"bundleId\":\"a\",\"entitlement\":{}}]",
            "apps.json [0]: no member is called \"entitlement\"; the nearest is entitlements"
        ),
        (
            "[{\"bundleId\":\"a\",\"appAppleId\":\"1\"}]",
            "apps.json [0].appAppleId: must be the number that App Store Connect calls Apple ID, without quotation marks"
        ),
        (
            "[{\"bundleId\":\"a\",\"entitlements\":{\"p\":\"x\"}}]",
            "apps.json [0].entitlements.p: must be an array of product ids, each once: [\"pro.monthly\"]"
        ),
        (
            "[{\"bundleId\":\"a\",\"entitlements\":{\"p\":[\"x\",\"x\"]}}]",
            "apps.json [0].entitlements.p: must be an array of product ids, each once: [\"pro.monthly\"]"
        ),
        (
            "[{\"bundleId\":\"a\",\"entitlements\":{\"\":[]}}]",
            "apps.json [0].entitlements: \"\" must have 1 to 255 bytes, no control characters"
        ),
        (
            "[{\"bundleId\":\"a\",\"periods\":[]}]",
            "apps.json [0].periods: must be an object such as {\"pass.30\": \"P30D\"}, not an array"
        ),
        (
            "[{\"bundleId\":\"a\",\"periods\":{\"p\":\"30 days\"}}]",
            "apps.json [0].periods.p: must be a length such as \"P30D\", \"P6M\" or \"P1Y\", at most a century"
        ),
        (
            "[{\"bundleId\":\"a\"},{\"bundleId\":\"a\"}]",
            "apps.json [1].bundleId: \"a\" already has an entry; keep one of the two"
        ),
        (
            "[{\"bundleId\":\"a\",\"bundleId\":\"b\"}]",
            "apps.json: line 1 (byte 17): an object has two members with the same name (\"bundleId\")"
        ),
    ])
    func `says what is wrong and where`(_ text: String, _ message: String) {
        #expect(file(text).faults.map(\.description) == [message])
    }

    @Test func `reports every wrong member at once`() {
        let read = file("[{\"bundleId\":1,\"appAppleId\":0,\"periods\":{\"a\":1,\"b\":2}},{\"bundleId\":\"b\"}]")
        #expect(read.faults.count == 4)
        #expect(read.apps.map(\.bundleId) == ["b"])
    }
}
