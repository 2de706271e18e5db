// The languages of the record that programs are read in.

export const languageOf = (app, name) => app.record.languages.find((row) => row.name === name);
