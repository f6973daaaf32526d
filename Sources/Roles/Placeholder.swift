enum RolesPlaceholder {}
