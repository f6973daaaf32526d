enum ServiceTestsPlaceholder {}
